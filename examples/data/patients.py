#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes patients.csv: 1500 patients who never lived, with gaps as real tables have them.
The risk follows from age, bmi, pressure, smoking and the month of the visit, and chance."""
import datetime
import math
import random

random.seed(36)


def gap(text, share):
    return "" if random.random() < share else text


with open("patients.csv", "w") as out:
    print("id,age,bmi,pressure,sex,smoker,visit,risk", file=out)
    for i in range(1500):
        age = min(max(random.gauss(55, 14), 20), 90)
        bmi = min(max(random.gauss(27, 4.5), 16), 50)
        pressure = random.gauss(100 + 0.5 * age, 12)
        sex = random.choice(["female", "male"])
        smoker = random.choices(["never", "former", "current"], [5, 3, 2])[0]
        visit = datetime.date(2024, 1, 1) + datetime.timedelta(days=random.randrange(365))
        score = ((age - 55) / 10 + (bmi - 27) / 5 + (pressure - 128) / 15 +
                 {"never": -0.7, "former": 0.1, "current": 1.5}[smoker] +
                 0.6 * math.cos((visit.month - 1) / 6 * math.pi) - 0.8)
        risk = "high" if random.random() < 1 / (1 + math.exp(-1.3 * score)) else "low"
        print(f"P{i + 1000},{gap(f'{age:.0f}', 0.04)},{gap(f'{bmi:.1f}', 0.12)},"
              f"{gap(f'{pressure:.0f}', 0.08)},{gap(sex, 0.02)},{gap(smoker, 0.06)},{visit},{risk}",
              file=out)
