"""Rewards: what training pays for consistency."""

from unswayed.reward_settings import Reward as Reward
from unswayed.reward_settings import RewardSettings as RewardSettings
