"""Training: the self-play environment for Stable-Baselines3, opponents, PPO runs and their tables.

Importing this package loads no torch. Its modules need the ``train`` extra, except
:mod:`train.config` and :mod:`train.cli`: ``pip install "counterweight-env[train]"``.
"""
