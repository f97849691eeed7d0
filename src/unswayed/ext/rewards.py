"""Rewards: what training pays for consistency."""

from unswayed.training.reward_settings import Reward as Reward
from unswayed.training.reward_settings import RewardSettings as RewardSettings
