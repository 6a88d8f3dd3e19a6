/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory runs out once while a model loads, answers and goes: an error or the right
 * answer each time, every request answered and released, nothing left. Every 40th or so
 * of the allocations, all with STRATA_TEST_LONG.
 */
#include <time.h>

#include "tests/serving/serving_net.h"
#include "tests/support/fault.h"

static void open_faults(void)
{
    scratch_make();
    fault_json(false);
}

TestSuite(triton_memory, .init = open_faults, .fini = scratch_remove, .timeout = 3600);

/* A model's life with the at-th allocation failing; how many there were. */
static long live(struct served *s, const float *x, const float *y, long at)
{
    TRITONBACKEND_Request r[] = {request_of(x, 3), request_of(x + 3 * ROW, 5)};
    s->model = NULL;
    s->instance = NULL;
    fault_arm(FAULT_MEMORY, at, false);
    if ((s->backend = host_open("", s->text)) &&
        (s->model = host_load(s->backend, scratch, "net", NULL, true, s->text)))
        s->instance =
            host_instance(s->model, TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, s->text);
    if (s->instance)
        host_execute(s->instance, r, 2, s->text);
    const long calls = fault_disarm();
    for (int i = 0; i < 2 && s->instance; i++) {
        cr_expect(r[i].text[0] || s->text[0] ||
                      answered(&r[i], y + i * 3 * UNITS, 3 + 2 * i),
                  "allocation %ld fails, and request %d is answered wrongly", at, i);
        host_clear(&r[i]);
    }
    if (s->instance)
        host_end(s->instance);
    if (s->model)
        host_unload(s->model);
    if (s->backend)
        host_close(s->backend);
    return calls;
}

Test(triton_memory, may_run_out_at_any_time)
{
    static float x[BATCH * ROW], y[BATCH * UNITS];
    struct served s;
    long failed = 0;
    make_model(&s, "[profile]\nN = 1, 8\n", "N x 3 x 6 x 6", "prob", conv_net);
    fill_row(x, BATCH * ROW, 9);
    expected(&s, x, y, BATCH);
    live(&s, x, y, 0);
    const long calls = live(&s, x, y, 0), blocks = fault_blocks();
    const long by = getenv("STRATA_TEST_LONG") ? 1 : calls / 40 + 1;
    cr_assert(s.instance && calls > 100, "%ld allocations: %s", calls, s.text);
    for (long k = 1 + time(NULL) % by; k <= calls; k += by) {
        live(&s, x, y, k);
        failed += s.text[0] != 0;
        cr_expect_eq(host_objects(), 0, "allocation %ld: %ld objects left", k,
                     host_objects());
        cr_expect_eq(fault_blocks(), blocks, "allocation %ld: %ld blocks left", k,
                     fault_blocks() - blocks);
    }
    cr_expect(failed > 10, "%ld failures told", failed);
    strata_context_destroy(s.context);
    close_net(&s.net);
}
