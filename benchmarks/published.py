"""Test accuracies that the paper reports (Toth, Bonnier and Oberhauser, ICLR 2021)."""

MODELS = ("1-NN DTW", "FCN128", "ResNet", "LS2T64³", "FCN64-LS2T64³", "FCN128-LS2T64³")
_ACCURACY = {
    "ArabicDigits": (0.908, 0.995, 0.995, 0.979, 0.996, 0.997),
    "AUSLAN": (0.727, 0.979, 0.971, 0.987, 0.996, 0.995),
    "CharacterTrajectories": (0.948, 0.992, 0.985, 0.980, 0.993, 0.995),
    "DigitShapes": (1.000, 1.000, 1.000, 1.000, 1.000, 1.000),
    "ECG": (0.790, 0.860, 0.856, 0.824, 0.892, 0.886),
    "JapaneseVowels": (0.962, 0.990, 0.989, 0.984, 0.991, 0.994),
    "KickvsPunch": (0.600, 1.000, 1.000, 1.000, 1.000, 1.000),
    "LIBRAS": (0.888, 0.966, 0.966, 0.859, 0.946, 0.956),
    "PenDigits": (0.927, 0.967, 0.963, 0.956, 0.963, 0.962),
    "Shapes": (1.000, 1.000, 1.000, 1.000, 1.000, 1.000),
    "UWave": (0.916, 0.979, 0.978, 0.958, 0.975, 0.976),
    "Wafer": (0.974, 0.987, 0.989, 0.983, 0.988, 0.990),
}
PUBLISHED = {name: dict(zip(MODELS, row, strict=True)) for name, row in _ACCURACY.items()}
