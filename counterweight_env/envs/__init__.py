"""The environments: PettingZoo AEC, Gymnasium Env and Gymnasium VectorEnv."""
