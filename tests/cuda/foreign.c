/* SPDX-License-Identifier: Apache-2.0
 *
 * Streams and events of an application's own CUDA code: contexts on its streams, its
 * events waited for, ours given to it. CUDA is called as such an application calls it.
 */
#include "tests/cuda/chain.h"
#include "tests/cuda/device.h"
#include "tests/cuda/runtime.h"

TestSuite(cuda_foreign, .fini = remove_files, .timeout = 600);

#define OK(call) cr_assert_eq((call), STRATA_OK, "%s", err.message)
#define CUDA(call) cr_assert_eq((call), 0)

enum { NON_BLOCKING = 1, NO_TIMING = 2, TO_DEVICE = 1, FROM_DEVICE = 2 };

/* Of the runtime that the device module brought; streams and events are pointers. */
static struct {
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_synchronize)(void *stream);
    int (*stream_query)(void *stream);
    int (*stream_wait)(void *stream, void *event, unsigned flags);
    int (*event_create)(void **event, unsigned flags);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*copy)(void *to, const void *from, size_t bytes, int kind, void *stream);
    int (*fill)(void *to, int byte, size_t bytes, void *stream);
} cuda;

static strata_handle *open_cuda(void)
{
    const struct {
        void *function;
        const char *name;
    } names[] = {{&cuda.stream_create, "cudaStreamCreateWithFlags"},
                 {&cuda.stream_destroy, "cudaStreamDestroy"},
                 {&cuda.stream_synchronize, "cudaStreamSynchronize"},
                 {&cuda.stream_query, "cudaStreamQuery"},
                 {&cuda.stream_wait, "cudaStreamWaitEvent"},
                 {&cuda.event_create, "cudaEventCreateWithFlags"},
                 {&cuda.event_destroy, "cudaEventDestroy"},
                 {&cuda.event_record, "cudaEventRecord"},
                 {&cuda.copy, "cudaMemcpyAsync"},
                 {&cuda.fill, "cudaMemsetAsync"}};
    strata_handle *h = need_cuda();
    for (size_t i = 0; h && i < ARRAY_LENGTH(names); i++) {
        void *found = runtime(names[i].name);
        memcpy(names[i].function, &found, sizeof found);
    }
    return h;
}

/* Copies in, runs and copies out are put on the application's stream, which alone keeps
 * them in order; with native NULL it is CUDA's legacy default stream. */
static void run_on(void *native, const char *what)
{
    static const char *const kernels[] = {"kernel", "kernel", "kernel"};
    static float x[CHAIN_COUNT], y[CHAIN_COUNT], want[CHAIN_COUNT];
    strata_handle *h = need_cuda();
    strata_stream *ours = NULL;
    strata_error err = {0};
    struct net n;
    OK(strata_stream_wrap(&ours, h, native, &err));
    cr_expect_eq(strata_stream_native(ours), native);
    strata_set_stream(h, ours);
    write_chain(kernels, 3, false);
    open_net(&n, h);
    void *in = strata_context_data(n.context, 0),
         *out = strata_context_data(n.context, 1);
    for (int run = 0; run < 4; run++) { /* the first loads kernels, then by a graph */
        draw(x, CHAIN_COUNT);
        chain_of(want, x, 3);
        memset(y, 0xff, sizeof y);
        CUDA(cuda.copy(in, x, sizeof x, TO_DEVICE, native));
        OK(strata_context_enqueue(n.context, NULL, &err));
        CUDA(cuda.copy(y, out, sizeof y, FROM_DEVICE, native));
        CUDA(cuda.stream_synchronize(native));
        expect_equal(y, want, what);
    }
    OK(strata_context_wait(n.context, &err));
    strata_context_destroy(n.context);
    n.context = NULL;
    strata_set_stream(h, NULL);
    strata_stream_destroy(ours);
    CUDA(cuda.stream_query(native)); /* it is still there */
    close_net(&n);
}

Test(cuda_foreign, contexts_run_on_a_stream_of_the_application)
{
    strata_handle *h = open_cuda();
    void *native = NULL;
    CUDA(cuda.stream_create(&native, NON_BLOCKING));
    run_on(native, "a stream of the application");
    CUDA(cuda.stream_destroy(native));
    strata_destroy(h);
}

Test(cuda_foreign, contexts_run_on_the_legacy_default_stream)
{
    strata_handle *h = open_cuda();
    run_on(NULL, "the legacy default stream");
    strata_destroy(h);
}

/* Theirs fills for long, then ours copies, then theirs copies out: without the events the
 * copies would be too early. */
Test(cuda_foreign, events_are_waited_for_both_ways)
{
    enum { BIG = 256 << 20, LAST = 50 };
    strata_handle *h = open_cuda();
    const struct device_ops *ops = h->device->ops;
    strata_stream *ours = strata_get_stream(h);
    strata_event *wrapped = NULL, *own = NULL;
    strata_error err = {0};
    void *theirs = NULL, *event = NULL;
    unsigned char last = 0;
    char *a = allocator_get(&h->allocator, BIG, "a", &err);
    char *b = allocator_get(&h->allocator, BIG, "b", &err);
    cr_assert(a && b, "%s", err.message);
    CUDA(cuda.stream_create(&theirs, NON_BLOCKING));
    CUDA(cuda.event_create(&event, NO_TIMING));
    OK(strata_event_wrap(&wrapped, h, event, &err));
    OK(strata_event_create(&own, h, &err));
    cr_expect_eq(strata_event_native(wrapped), event);
    cr_expect_not_null(strata_event_native(own));
    for (int i = 1; i <= LAST; i++)
        CUDA(cuda.fill(a, i, BIG, theirs));
    CUDA(cuda.event_record(event, theirs));
    OK(strata_stream_wait(ours, wrapped, &err));
    OK(ops->copy(ours, b, a, BIG, COPY_ON_DEVICE, &err));
    OK(strata_event_record(own, ours, &err));
    CUDA(cuda.stream_wait(theirs, strata_event_native(own), 0));
    CUDA(cuda.copy(&last, b + BIG - 1, 1, FROM_DEVICE, theirs));
    CUDA(cuda.stream_synchronize(theirs));
    cr_expect_eq(last, LAST);
    /* Recorded by us, it is theirs all the same. */
    OK(strata_event_record(wrapped, ours, &err));
    OK(strata_event_synchronize(wrapped, &err));
    strata_event_destroy(wrapped);
    CUDA(cuda.event_record(event, theirs));
    CUDA(cuda.event_destroy(event));
    CUDA(cuda.stream_destroy(theirs));
    strata_event_destroy(own);
    allocator_put(&h->allocator, a, BIG);
    allocator_put(&h->allocator, b, BIG);
    strata_destroy(h);
}
