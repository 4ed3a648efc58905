/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions of images with more padding on one side than on the other, by each algorithm: the
 * gradient of the image is the adjoint, <conv(x), d> = <x, gradient(d)>.
 */
#include "lib/session.h"

#include <math.h>
#include <stdio.h>

static const char form[] = "image = Const() {dtype=int32, value=[2,%d,%d,32]}\n"
                           "outputs = Const() {dtype=int32, value=[2,20,24,32]}\n"
                           "filters = Const() {dtype=int32, value=[3,3,32,32]}\n"
                           "all = Const() {dtype=int32, value=[0,1,2,3]}\n"
                           "x = RandomUniform(image) {dtype=float32, seed2=1}\n"
                           "d = RandomUniform(outputs) {dtype=float32, seed2=2}\n"
                           "f = RandomUniform(filters) {dtype=float32, seed2=3}\n"
                           "y = Conv2D(x, f) {strides=[1,1,1,1], padding=\"EXPLICIT\", "
                           "explicit_paddings=[0,0,%d,%d,%d,%d,0,0]}\n"
                           "g = Conv2DBackpropInput(image, f, d) {strides=[1,1,1,1], "
                           "padding=\"EXPLICIT\", explicit_paddings=[0,0,%d,%d,%d,%d,0,0]}\n"
                           "yd = Mul(y, d)\nxg = Mul(x, g)\n"
                           "a = Sum(yd, all)\nb = Sum(xg, all)\n";

static void check(int top, int bottom, int left, int right)
{
    struct fixture f;
    char text[2000];
    snprintf(text, sizeof text, form, 22 - top - bottom, 26 - left - right, top, bottom, left,
             right, top, bottom, left, right);
    fixture_open(&f, text, false);
    double a = fixture_get(&f, "a", NAN), b = fixture_get(&f, "b", NAN);
    if (fabs(a - b) > 1e-5 * fabs(a))
        fail_msg("padding %d %d %d %d: %.9g and %.9g", top, bottom, left, right, a, b);
    fixture_close(&f);
}

static void gradients_are_adjoint(void **state)
{
    (void)state;
    for (int i = 0; i < 81; i++)
        check(i % 3, i / 3 % 3, i / 9 % 3, i / 27);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_adjoint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
