"""Checks what a plain install, without extras, brings and can do. Run outside the repository."""

import importlib.util
import subprocess
import sys
from pathlib import Path

for name in ("torch", "ray", "jax", "pyspiel", "matplotlib", "stable_baselines3"):
    assert importlib.util.find_spec(name) is None, f"a plain install has {name}"

import gymnasium
import numpy as np

import counterweight_env as cw

assert "site-packages" in str(Path(cw.__file__)), cw.__file__

for rules in ("classic", "exchange"):
    env = gymnasium.make("Counterweight-v0", rules=rules)
    observation, info = env.reset(seed=1)
    done = False
    while not done:
        action = int(np.flatnonzero(info["action_mask"])[0])
        observation, reward, done, truncated, info = env.step(action)
    aec = cw.env(rules=rules)
    aec.reset(seed=1)
    for _agent in aec.agent_iter():
        seen, _, terminated, _, _ = aec.last()
        aec.step(None if terminated else int(np.flatnonzero(seen["action_mask"])[0]))

counterweight = Path(sys.executable).with_name("counterweight")
subprocess.run([counterweight, "--help"], check=True, stdout=subprocess.DEVNULL)
for extra, arguments in (("train", ["train"]), ("arena", ["arena", "random", "greedy"])):
    refused = subprocess.run(
        [counterweight, *arguments], capture_output=True, text=True, check=False
    )
    assert refused.returncode != 0, f"{arguments} ran without its extra"
    assert f"counterweight-env[{extra}]" in refused.stderr, refused.stderr
print("plain install: 1 passed, 0 failed")
