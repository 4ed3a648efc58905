# SPDX-License-Identifier: Apache-2.0
# Predictions for 403 rows, and what scikit-learn says of them: python3 metric.py > expected.txt
# writes rows.csv, too. Probabilities have two digits, so that many tie.
import numpy as np
from sklearn import metrics as m

rng = np.random.default_rng(4)
n, k = 403, 4
y = rng.choice(k, n, p=[0.5, 0.3, 0.15, 0.05])
s = np.round(rng.normal(size=(n, k)) + 1.2 * np.eye(k)[y], 4).astype(np.float32)
b = (rng.random(n) < 0.3).astype(int)
p = np.round(np.clip(0.35 + 0.25 * b + 0.2 * rng.normal(size=n), 0.01, 0.99), 2).astype(np.float32)
t = (1000 + 3 * p + rng.normal(size=n)).astype(np.float32)
g = (t + 0.5 * rng.normal(size=n)).astype(np.float32)
w = rng.integers(1, 5, n).astype(np.float32)
columns = [s[:, 0], s[:, 1], s[:, 2], s[:, 3], y, p, b, t, g, w]
with open("rows.csv", "w") as out:
    print("s0,s1,s2,s3,y,p,b,t,g,w", file=out)
    for row in zip(*columns):
        print(",".join(np.format_float_positional(v, trim="-") for v in row), file=out)

s, p, t, g = s.astype(float), p.astype(float), t.astype(float), g.astype(float)
soft = np.exp(s) / np.exp(s).sum(1, keepdims=True)
two = np.exp(s[:, :2]) / np.exp(s[:, :2]).sum(1, keepdims=True)
c, d = s.argmax(1), (p > 0.5).astype(int)
for tail, q in (("", None), ("_w", w)):
    values = {
        "accuracy": m.accuracy_score(y, c, sample_weight=q),
        "accuracy_p": m.accuracy_score(b, d, sample_weight=q),
        "top_2": m.top_k_accuracy_score(y, s, k=2, sample_weight=q),
        "confusion": m.confusion_matrix(y, c, sample_weight=q),
        "auc": m.roc_auc_score(b, p, sample_weight=q),
        "auc_two": m.roc_auc_score(b, two[:, 1], sample_weight=q),
        "ap": m.average_precision_score(b, p, sample_weight=q),
        "log_loss": m.log_loss(y, soft, sample_weight=q),
        "log_loss_b": m.log_loss(b, 1 / (1 + np.exp(-p)), sample_weight=q),
        "perplexity": np.exp(m.log_loss(y, soft, sample_weight=q)),
        "mse": m.mean_squared_error(t, g, sample_weight=q),
        "rmse": m.mean_squared_error(t, g, sample_weight=q) ** 0.5,
        "mae": m.mean_absolute_error(t, g, sample_weight=q),
        "r2": m.r2_score(t, g, sample_weight=q),
        "mean": np.average(t, weights=q),
    }
    if q is None:
        values["auc_all"] = m.roc_auc_score(y, soft, multi_class="ovr")
    for name, f in ("precision", m.precision_score), ("recall", m.recall_score), ("f1", m.f1_score):
        values[name] = f(b, d, sample_weight=q)
        values[name + "_0"] = f(b, d, sample_weight=q, pos_label=0)
        for average in "macro", "micro", "weighted":
            values[name + "_" + average] = f(y, c, average=average, sample_weight=q)
    for name, value in values.items():
        print(name + tail, *np.ravel(value))
