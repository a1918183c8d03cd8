#!/usr/bin/env python3
"""Self-play PPO with TorchRL over the PettingZoo environment: --help lists the options.

Both seats are one group and share one network. At each step one of the two acts; `mask` says which,
`action_mask` what it may do. Both see the game at each step, so values and advantages run over all
steps, and the loss takes only the decisions that were really made.
"""

import argparse
import warnings

import torch
from tensordict import TensorDict
from tensordict.nn import ProbabilisticTensorDictModule as Draw
from tensordict.nn import ProbabilisticTensorDictSequential as Policy
from tensordict.nn import TensorDictModule as Module
from torchrl.collectors import Collector
from torchrl.envs import MarlGroupMapType, PettingZooWrapper
from torchrl.modules import MaskedCategorical
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import agents
import counterweight_env


class Network(torch.nn.Sequential):
    """A network over the observation's bits."""

    def __init__(self, inputs, width, outputs):
        layers = [torch.nn.Linear(inputs, width), torch.nn.Tanh()]
        layers += [torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, outputs)]
        super().__init__(*layers)

    def forward(self, bits):
        """Return the last layer."""
        return super().forward(bits.float())


class Player:
    """The network as a player of the arena: it takes the likeliest action."""

    name = "torchrl"

    def __init__(self, network):
        self.network = network

    def act(self, views):
        """Choose for each row."""
        with torch.no_grad():
            logits = self.network(torch.as_tensor(views.observation))
        return logits.masked_fill(~torch.as_tensor(views.legal), -torch.inf).argmax(-1).numpy()


def main():
    """Train, and play against random before and after."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--rules", default="classic")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--steps", type=int, default=4096, help="decisions an iteration")
    parser.add_argument("--minibatch", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--deals", type=int, default=1000, help="duplicate deals of each score")
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)  # the network is small
    warnings.filterwarnings("ignore", "PettingZoo in TorchRL is tested")

    env = PettingZooWrapper(
        counterweight_env.raw_env(rules=args.rules),  # here an illegal action is an error
        use_mask=True,
        group_map=MarlGroupMapType.ALL_IN_ONE_GROUP,
        seed=args.seed,
    )
    seen = ("agents", "observation", "observation")
    inputs = env.observation_spec[seen].shape[-1]
    names = ("action", "sample_log_prob", "state_value", "advantage", "value_target", "reward")
    names += ("done", "terminated")
    key = {name: ("agents", name) for name in (*names, "logits", "action_mask", "mask")}
    network = Network(inputs, args.width, env.full_action_spec[key["action"]].space.n)
    draw = Draw(
        in_keys={"logits": key["logits"], "mask": key["action_mask"]},
        out_keys=[key["action"]],
        distribution_class=MaskedCategorical,
        return_log_prob=True,
        log_prob_key=key["sample_log_prob"],
        default_interaction_type="random",
    )
    actor = Policy(Module(network, in_keys=[seen], out_keys=[key["logits"]]), draw)
    critic = Module(Network(inputs, args.width, 1), in_keys=[seen], out_keys=[key["state_value"]])
    gae = GAE(gamma=1.0, lmbda=0.9, value_network=critic)
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.01, critic_coeff=0.25)
    loss.set_keys(**{"value" if n == "state_value" else n: key[n] for n in names})
    gae.set_keys(**{"value" if n == "state_value" else n: key[n] for n in names[2:]})
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
    collector = Collector(
        env,
        actor,
        frames_per_batch=args.steps,
        total_frames=args.steps * args.iterations,
        auto_register_policy_transforms=False,  # they are for recurrent policies
    )

    score = agents.play_match(Player(network), "random", args.rules, args.deals).score
    print(f"score against random before: {score:.3f}")
    for number, steps in enumerate(collector, start=1):
        with torch.no_grad():
            gae(steps)
        decisions = TensorDict({"agents": steps["agents"][steps[key["mask"]]]}, [args.steps])
        for _ in range(args.epochs):
            for rows in torch.randperm(args.steps).split(args.minibatch):
                losses = loss(decisions[rows])
                total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                optimizer.zero_grad()
                total.backward()
                torch.nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimizer.step()
        print(f"iteration {number}: {int(steps['next', 'done'].sum())} games ended", flush=True)
    collector.shutdown()
    score = agents.play_match(Player(network), "random", args.rules, args.deals).score
    print(f"score against random after: {score:.3f}")


if __name__ == "__main__":
    main()
