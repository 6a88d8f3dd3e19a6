/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as a plan's certificate, which is then checked against a
 * small problem. What is read is written and read back the same; what the checker takes
 * is the optimum.
 */
#include <stdlib.h>
#include <string.h>

#include "planner/certificate/certificate.h"
#include "planner/solver/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OPS = 3, LABELS = 2, OPTIMUM = 11 };

/* A source, and two readers of it that would rather not agree: 1 + 3 + 4 + 3. */
static const struct plan_problem *problem(void)
{
    static struct plan_choice choices[OPS][2] = {
        {{.out = {0}, .cost = 1}, {.out = {1, 1, 1, 1, 1, 1, 1, 1}, .cost = 9}},
        {{.in = {0}, .cost = 3}, {.in = {1, 1, 1, 1, 1, 1, 1, 1}, .cost = 20}},
        {{.in = {0}, .cost = 30}, {.in = {1, 1, 1, 1, 1, 1, 1, 1}, .cost = 4}},
    };
    static const int tensor[1] = {0};
    static struct plan_op ops[OPS] = {
        {"a", 0, 1, NULL, tensor, choices[0], 2},
        {"b", 1, 0, tensor, NULL, choices[1], 2},
        {"c", 1, 0, tensor, NULL, choices[2], 2},
    };
    static struct plan_reader readers[2] = {{1, 0}, {2, 0}};
    static const int64_t conversion[LABELS * LABELS] = {0, 3, 3, 0};
    static struct plan_tensor tensors[1] = {{"t", 0, 0, readers, 2, conversion}};
    static const struct plan_problem p = {.labels = {{0, 0, 24, 0}, {1, 0, 24, 0}},
                                          .n_labels = LABELS,
                                          .ops = ops,
                                          .n_ops = OPS,
                                          .tensors = tensors,
                                          .n_tensors = 1};
    return &p;
}

static void check_round_trip(const struct plan_certificate *c)
{
    struct plan_certificate *again = NULL;
    char *text = NULL, *copy = NULL;
    if (plan_certificate_write(&text, c, NULL) != STRATA_OK ||
        plan_certificate_read(&again, text, NULL) != STRATA_OK ||
        plan_certificate_write(&copy, again, NULL) != STRATA_OK ||
        strcmp(text, copy) != 0)
        abort();
    plan_certificate_free(again);
    free(text);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct plan_certificate *c = NULL;
    strata_error err = {0};
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    int status = plan_certificate_read(&c, text, &err);
    if (status != err.status || (status == STRATA_OK) != (c != NULL))
        abort();
    if (c) {
        check_round_trip(c);
        if (plan_check(problem(), NULL, c, NULL) == STRATA_OK && c->objective != OPTIMUM)
            abort();
    }
    plan_certificate_free(c);
    free(text);
    return 0;
}
