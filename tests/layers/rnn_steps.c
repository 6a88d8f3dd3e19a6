/* SPDX-License-Identifier: Apache-2.0
 *
 * The step that the weights of an RNN are whole numbers of, which decides whether they
 * are packed as bytes.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "plugins/rnn/host.h"

Test(rnn_steps, a_row_of_whole_numbers_has_a_step)
{
    static const float rows[][4] = {{3, -1.5f, 0, 190.5f}, {0, 0, -0.f, 0}};
    cr_expect_eq(rnn_find_step(rows[0], 4, 0), 1.5f);
    cr_expect_eq(rnn_find_step(rows[1], 4, 0), 0);
}

/* A byte has none of them. */
Test(rnn_steps, a_row_with_what_is_no_number_has_none)
{
    static const float odd[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 4; i++)
        for (int at = 0; at < 3; at++)
            for (int other = 0; other < 2; other++) {
                float row[3] = {(float)other, (float)other, (float)other};
                row[at] = odd[i];
                cr_expect_eq(rnn_find_step(row, 3, 0), -1, "%g and %d", (double)odd[i],
                             other);
                cr_expect_eq(rnn_find_step(row, 3, 1), -1, "%g and %d", (double)odd[i],
                             other);
            }
}
