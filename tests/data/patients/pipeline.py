# SPDX-License-Identifier: Apache-2.0
# What scikit-learn's pipeline comes to on the split of docs/patients.md, over ten seeds of its net:
# python3 pipeline.py > expected.txt, with tf-data in the path.
import io
import subprocess

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

table = pd.read_csv("../../../examples/data/patients.csv.gz", parse_dates=["visit"])
table["visit"] = table["visit"].dt.month


def part(name):
    ids = subprocess.run(["sh", "-c", "tf-data csv ../../../examples/data/patients.csv.gz "
                          "y=risk:category --split 70/15/15 --stratify risk --part " + name +
                          " --keep id=ids.csv > rec && cat ids.csv && rm ids.csv rec"],
                         capture_output=True, check=True, text=True).stdout
    rows = table[table["id"].isin(pd.read_csv(io.StringIO(ids))["id"])]
    return rows, rows["risk"] == "low"


def prepared(model):
    return make_pipeline(make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler()),
         ["age", "bmi", "pressure"]),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
         ["sex", "smoker"]),
        (OneHotEncoder(), ["visit"])), model)


(x, y), (tx, ty) = part("train"), part("test")
models = [LogisticRegression(max_iter=1000)] + [
    MLPClassifier(16, early_stopping=True, random_state=seed, max_iter=500) for seed in range(10)]
for model in models:
    fitted = prepared(model).fit(x, y)
    print(type(model).__name__, accuracy_score(ty, fitted.predict(tx)),
          roc_auc_score(ty, fitted.predict_proba(tx)[:, 1]))
