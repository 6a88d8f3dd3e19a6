/* SPDX-License-Identifier: Apache-2.0
 *
 * libFuzzer target: any bytes as a saved plan, compared with itself, from which nothing
 * may differ, and with another.
 */
#include <stdlib.h>

#include "planner/explain/explain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char other[] =
    "{\"plan\": 1, \"network\": {\"name\": \"n\"}, \"device\": {\"name\": \"host\"},"
    "\"totals\": {\"cost\": 7}, \"nodes\": [{\"name\": \"a\", \"impl\": \"c\", \"row\": "
    "0,"
    "\"reads\": [\"fp32:nchw\"], \"writes\": [\"fp32:nchw\"], \"cost\": 7}],"
    "\"tensors\": [], \"reformats\": [], \"costs\": {\"choices\": [], \"conversions\": "
    "[]}}";

static void compare(const json_t *a, const json_t *b, int same)
{
    struct explain_diff *d = NULL;
    strata_error err = {0};
    int status = explain_compare(&d, a, b, &err);
    if (status != err.status || (status == STRATA_OK) != (d != NULL))
        abort();
    if (d && same && (d->decisions.n || d->entries.n))
        abort();
    explain_diff_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *plan = json_loadb((const char *)data, size, 0, NULL);
    json_t *b = json_loads(other, 0, NULL);
    if (!b)
        abort();
    if (plan) {
        compare(plan, plan, 1);
        compare(plan, b, 0);
        compare(b, plan, 0);
    }
    json_decref(plan);
    json_decref(b);
    return 0;
}
