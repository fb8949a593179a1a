"""Regression: predict a number from a time series.

`RandomLS2TRegressor` maps each series to random LS2T features and fits a ridge regression; the penalty is chosen
by leave-one-out. The series (Covid3Month: daily cases, target death rate) come with aeon.
"""

# %%
# ## Fit
import numpy as np
from matplotlib.figure import Figure
from sklearn.dummy import DummyRegressor
from sklearn.metrics import root_mean_squared_error

from seq2tens import plots
from seq2tens.data import load_dataset
from seq2tens.estimators import RandomLS2TRegressor

train, test = load_dataset("Covid3Month")
y, truth = train.labels.astype(float), test.labels.astype(float)
model = RandomLS2TRegressor(random_state=0).fit(train.sequences, y)
predicted = model.predict(test.sequences)
mean = DummyRegressor().fit(np.zeros((len(y), 1)), y).predict(np.zeros((len(truth), 1)))
print(train.sequences)
print(
    f"RMSE {root_mean_squared_error(truth, predicted):.4f}; of the mean {root_mean_squared_error(truth, mean):.4f}"
)

# %%
# ## Plot
figure = Figure(figsize=(4.6, 4.2), layout="constrained")
ax = figure.subplots()
ax.plot(truth, predicted, "o", color="#3b6fb6", alpha=0.7)
ax.plot([0, truth.max()], [0, truth.max()], color="grey", linewidth=1)
ax.set_xlabel("true value")
ax.set_ylabel("prediction")
plots.save(figure, "regression.png")

# %%
# ![Predictions against true values of the test series, with the diagonal](regression.png)
