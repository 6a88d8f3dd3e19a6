/* SPDX-License-Identifier: Apache-2.0
 *
 * One engine, many threads, each with a handle, a stream and contexts of its own: every
 * answer is bit for bit that of one thread alone. On the host, or on the device that
 * STRATA_TEST_DEVICE names; STRATA_TEST_LONG makes many more runs, and STRATA_TEST_RUNS,
 * STRATA_TEST_CYCLES and STRATA_TEST_SECONDS say how many, and how long at most.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "engine/context/context.h"
#include "core/team.h"
#include "tests/engine/batch_net.h"

TestSuite(threads, .init = scratch_make, .fini = scratch_remove, .timeout = 3600);

enum { THREADS = 64, SAMPLES = 32, PIXELS = 64, CLASSES = 10, CONTEXT_RUNS = 100 };

static const char *device(void)
{
    return env_or("STRATA_TEST_DEVICE", "host");
}

static long amount(const char *name, long brief, long all)
{
    const char *given = getenv(name);
    return given ? atol(given) : getenv("STRATA_TEST_LONG") ? all : brief;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void digits_path(char *out, size_t size)
{
    snprintf(out, size, "%s/examples/digits/digits.ini", env_or("srcdir", "."));
}

static int open_digits_with(struct net *n, const char *where, const char *const *set,
                            size_t n_set, strata_error *err)
{
    const strata_network_options options = {
        .struct_size = sizeof options, .set = set, .n_set = n_set};
    char path[1024];
    memset(n, 0, sizeof *n);
    digits_path(path, sizeof path);
    int status = strata_create(&n->handle, where, err);
    if (status == STRATA_OK)
        status = strata_registry_create(&n->registry, NULL, err);
    if (status == STRATA_OK)
        status = strata_network_load(&n->network, path, n->registry, &options, err);
    return status != STRATA_OK
               ? status
               : strata_engine_build(&n->engine, n->handle, n->network, err);
}

/* By the model's costs: measured ones may give another plan, with other roundings, each
 * time. */
static int open_digits(struct net *n, strata_error *err)
{
    static const char *const set[] = {"build.costs=analytic"};
    return open_digits_with(n, device(), set, 1, err);
}

/* ---- runs
 * ------------------------------------------------------------------------------ */

struct shared {
    const struct net *net;
    float x[SAMPLES][PIXELS], y[SAMPLES][CLASSES];
    double deadline; /* 0: none */
    long runs;       /* of a thread */
    atomic_long done, wrong;
    pthread_mutex_t lock; /* guards first */
    char first[512];      /* what went wrong first */
};

static void complain(struct shared *s, const char *what, long run, const char *message)
{
    if (atomic_fetch_add(&s->wrong, 1) > 0)
        return;
    pthread_mutex_lock(&s->lock);
    snprintf(s->first, sizeof s->first, "%s at run %ld: %.400s", what, run, message);
    pthread_mutex_unlock(&s->lock);
}

static int run_sample(strata_context *c, const float *x, float *y, strata_error *err)
{
    int status = strata_copy_in(c, 0, x, err);
    if (status == STRATA_OK)
        status = strata_context_run(c, err);
    return status != STRATA_OK ? status : strata_copy_out(c, 1, y, err);
}

/* Contexts come and go while others run. */
static int run_some(struct shared *s, strata_handle *h, long *run, unsigned *seed,
                    strata_error *err)
{
    strata_context *c = NULL;
    float y[CLASSES];
    int status = strata_context_create(&c, s->net->engine, h, err);
    for (int i = 0; i < CONTEXT_RUNS && *run < s->runs && status == STRATA_OK; i++) {
        const int k = rand_r(seed) % SAMPLES;
        status = run_sample(c, s->x[k], y, err);
        if (status == STRATA_OK && memcmp(y, s->y[k], sizeof y) != 0)
            complain(s, "another answer", *run, "not bit-identical");
        ++*run;
    }
    strata_context_destroy(c);
    return status;
}

static void *work(void *arg)
{
    struct shared *s = arg;
    strata_handle *h = NULL;
    strata_error *err = malloc(sizeof *err);
    unsigned seed = (unsigned)(uintptr_t)&h;
    long run = 0;
    int status = strata_create(&h, device(), err);
    while (status == STRATA_OK && run < s->runs &&
           (s->deadline == 0 || seconds() < s->deadline))
        status = run_some(s, h, &run, &seed, err);
    if (status != STRATA_OK)
        complain(s, "failure", run, err->message);
    atomic_fetch_add(&s->done, run);
    strata_destroy(h);
    free(err);
    return NULL;
}

static void find_answers(struct shared *s)
{
    strata_error err;
    strata_context *c;
    const unsigned seed = (unsigned)time(NULL);
    srand(seed);
    fprintf(stderr, "# seed %u\n", seed);
    OK(strata_context_create(&c, s->net->engine, s->net->handle, &err));
    for (int k = 0; k < SAMPLES; k++) {
        for (int i = 0; i < PIXELS; i++)
            s->x[k][i] = (float)rand() / (float)RAND_MAX;
        OK(run_sample(c, s->x[k], s->y[k], &err));
    }
    strata_context_destroy(c);
}

static void need_device(void)
{
    strata_handle *h = NULL;
    strata_error err;
    if (strata_create(&h, device(), &err) != STRATA_OK) {
        const char *required = getenv("STRATA_REQUIRE_DEVICE");
        cr_assert(!required || strcmp(required, "1") != 0, "%s", err.message);
        cr_skip_test("no device");
    }
    strata_destroy(h);
}

Test(threads, sixty_four_on_one_engine_answer_as_one_does)
{
    struct net n;
    strata_error err;
    pthread_t threads[THREADS];
    struct shared *s = calloc(1, sizeof *s);
    need_device();
    OK(open_digits(&n, &err));
    s->net = &n;
    pthread_mutex_init(&s->lock, NULL);
    find_answers(s);
    const long total = amount("STRATA_TEST_RUNS", 3200, 100000);
    const long limit = amount("STRATA_TEST_SECONDS", 0, 0);
    const double begin = seconds();
    s->runs = (total + THREADS - 1) / THREADS;
    s->deadline = limit ? begin + (double)limit : 0;
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, work, s), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    fprintf(stderr, "# %d threads, %ld runs on %s in %.1f s, %ld wrong\n", THREADS,
            s->done, device(), seconds() - begin, s->wrong);
    cr_expect_eq(s->wrong, 0, "%s", s->first);
    cr_expect(limit || s->done >= total, "%ld runs", s->done);
    cr_expect_gt(s->done, 0);
    close_net(&n);
    free(s);
}

/* ---- builders
 * -------------------------------------------------------------------------- */

static void *build_alone(void *arg)
{
    struct shared *s = arg;
    strata_error *err = malloc(sizeof *err);
    for (int i = 0; i < s->runs; i++) {
        struct net n;
        strata_context *c = NULL;
        float y[CLASSES];
        int status = open_digits(&n, err);
        if (status == STRATA_OK)
            status = strata_context_create(&c, n.engine, n.handle, err);
        if (status == STRATA_OK)
            status = run_sample(c, s->x[0], y, err);
        if (status != STRATA_OK || memcmp(y, s->y[0], sizeof y) != 0)
            complain(s, "a builder", i, status != STRATA_OK ? err->message : "answer");
        strata_context_destroy(c);
        strata_engine_destroy(n.engine);
        strata_network_destroy(n.network);
        strata_registry_destroy(n.registry);
        strata_destroy(n.handle);
    }
    free(err);
    return NULL;
}

static atomic_int in_logger;
static int logged; /* by one call at a time, so without a lock */

static void count_lines(void *user, int level, const char *text)
{
    (void)level;
    if (atomic_fetch_add(&in_logger, 1) != 0 || text[0] == '\0')
        *(atomic_int *)user = 1;
    logged++;
    atomic_fetch_sub(&in_logger, 1);
}

Test(threads, builders_are_independent_and_log_one_line_at_a_time)
{
    enum { BUILDERS = 6 };
    struct net n;
    strata_error err;
    pthread_t threads[BUILDERS];
    atomic_int overlapped = 0;
    struct shared *s = calloc(1, sizeof *s);
    need_device();
    OK(open_digits(&n, &err));
    s->net = &n;
    s->runs = 5;
    pthread_mutex_init(&s->lock, NULL);
    find_answers(s);
    strata_set_logger(count_lines, &overlapped, STRATA_LOG_DEBUG);
    for (int i = 0; i < BUILDERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, build_alone, s), 0);
    for (int i = 0; i < BUILDERS; i++)
        pthread_join(threads[i], NULL);
    strata_set_logger(NULL, NULL, STRATA_LOG_WARNING);
    cr_expect_eq(s->wrong, 0, "%s", s->first);
    cr_expect_eq(overlapped, 0, "the logger was called by two threads at once");
    cr_expect_geq(logged, BUILDERS * 5, "each build says what it fused");
    close_net(&n);
    free(s);
}

/* ---- a busy context
 * -------------------------------------------------------------------- */

struct slow {
    strata_context *context;
    int status;
};

static void *run_slowly(void *arg)
{
    struct slow *s = arg;
    strata_error err;
    do /* the other thread may be in for an instant */
        s->status = strata_context_run(s->context, &err);
    while (s->status == STRATA_EBUSY);
    return NULL;
}

static int do_enqueue(strata_context *c, strata_error *err)
{
    return strata_context_enqueue(c, NULL, err);
}
static int do_bind(strata_context *c, strata_error *err)
{
    return strata_context_bind(c, 0, NULL, err);
}
static int do_batch(strata_context *c, strata_error *err)
{
    return strata_context_set_batch(c, 1, err);
}
static int do_graph(strata_context *c, strata_error *err)
{
    return strata_context_use_graph(c, 0, err);
}
static int do_copy_in(strata_context *c, strata_error *err)
{
    const float x[24] = {0};
    return strata_copy_in(c, 0, x, err);
}
static int do_copy_out(strata_context *c, strata_error *err)
{
    float y[24];
    return strata_copy_out(c, 1, y, err);
}

static const struct {
    const char *name;
    int (*call)(strata_context *c, strata_error *err);
} calls[] = {
    {"run", strata_context_run},
    {"enqueue", do_enqueue},
    {"wait", strata_context_wait},
    {"prepare", strata_context_prepare},
    {"bind", do_bind},
    {"set_batch", do_batch},
    {"use_graph", do_graph},
    {"copy_in", do_copy_in},
    {"copy_out", do_copy_out},
};

Test(threads, every_call_on_a_busy_context_says_so)
{
    struct net n;
    strata_error err;
    struct slow s = {0};
    pthread_t thread;
    char layers[128];
    snprintf(layers, sizeof layers, "[layer last]\ntype = Trial\n%s", behind_gate());
    OK(open_net(&n, "", "8 x 3", "last", layers, &err));
    OK(strata_context_create(&s.context, n.engine, n.handle, &err));
    shut_gate();
    cr_assert_eq(pthread_create(&thread, NULL, run_slowly, &s), 0);
    /* wait: the one call that does no harm if it comes first. */
    while (strata_context_wait(s.context, &err) != STRATA_EBUSY)
        ;
    for (size_t i = 0; i < ARRAY_LENGTH(calls); i++) {
        cr_expect_eq(calls[i].call(s.context, &err), STRATA_EBUSY, "%s", calls[i].name);
        cr_expect_not_null(strstr(err.message, "in use by another thread"));
    }
    let_run(1);
    pthread_join(thread, NULL);
    cr_expect_eq(s.status, STRATA_OK, "the call that was inside is not disturbed");
    OK(strata_context_wait(s.context, &err));
    strata_context_destroy(s.context);
    close_net(&n);
}

/* ---- cycles
 * ---------------------------------------------------------------------------- */

static int entries(const char *folder)
{
    int n = 0;
    DIR *d = opendir(folder);
    cr_assert_not_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

static int descriptors(void)
{
    return entries("/proc/self/fd");
}

/* What /proc/self/status tells is off by as much as each processor has not yet told. */
static long resident_kib(void)
{
    static const char *const files[] = {"/proc/self/smaps_rollup", "/proc/self/status"};
    long kib = 0;
    for (size_t i = 0; i < ARRAY_LENGTH(files) && kib == 0; i++) {
        char line[256];
        FILE *f = fopen(files[i], "r");
        while (f && kib == 0 && fgets(line, sizeof line, f))
            if (sscanf(line, "Rss: %ld", &kib) != 1)
                sscanf(line, "VmRSS: %ld", &kib);
        if (f)
            fclose(f);
    }
    cr_assert_gt(kib, 0);
    return kib;
}

static void cycle(const float *x, const float *y)
{
    struct net n;
    strata_error err;
    strata_context *c;
    float found[CLASSES];
    OK(open_digits(&n, &err));
    OK(strata_context_create(&c, n.engine, n.handle, &err));
    OK(run_sample(c, x, found, &err));
    cr_expect_eq(memcmp(found, y, sizeof found), 0);
    strata_context_destroy(c);
    close_net(&n);
}

/* Sanitizers keep freed memory for a while. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GROWTH_KIB 1048576L
#else
#define GROWTH_KIB 1024L
#endif

Test(threads, loading_running_and_unloading_leaves_nothing_behind)
{
    struct net n;
    strata_error err;
    struct shared *s = calloc(1, sizeof *s);
    need_device();
    OK(open_digits(&n, &err));
    s->net = &n;
    find_answers(s);
    close_net(&n);
    const long cycles = amount("STRATA_TEST_CYCLES", 150, 10000);
    const long limit = amount("STRATA_TEST_SECONDS", 0, 0);
    const long warm = cycles / 4 < 100 ? cycles / 4 : 100;
    const double begin = seconds();
    long resident = 0, done = 0;
    int open = 0;
    while (done < cycles && (limit == 0 || seconds() < begin + (double)limit)) {
        cycle(s->x[0], s->y[0]);
        if (++done == warm) {
            resident = resident_kib();
            open = descriptors();
        }
    }
    const long grown = resident_kib() - resident;
    fprintf(stderr,
            "# %ld cycles on %s in %.1f s: %ld KiB resident, %+ld since cycle %ld; "
            "%d descriptors, %+d\n",
            done, device(), seconds() - begin, resident + grown, grown, warm,
            descriptors(), descriptors() - open);
    cr_assert_gt(done, warm);
    cr_expect_eq(descriptors(), open);
    cr_expect_leq(grown, GROWTH_KIB, "%ld KiB", grown);
    free(s);
}

#if defined _OPENMP && defined HAVE_OMP_PAUSE_RESOURCE
/* ---- teams ---------------------------------------------------------------------------
 */

static int threads_now(void)
{
    return entries("/proc/self/task") - 2; /* . and .. */
}

/* Threads that were told to end take a moment. */
static int threads_soon(int most)
{
    for (int i = 0; threads_now() > most && i < 60000; i++)
        usleep(1000);
    return threads_now();
}

/* More teams than processors make every parallel region slow, whoever runs it. */
Test(threads, a_built_engine_has_no_team)
{
    static const char *const set[] = {"build.costs=measure", "runtime.threads=4"};
    struct net n;
    strata_error err;
    const int before = threads_now();
    OK(open_digits_with(&n, "host", set, 2, &err));
    cr_expect_leq(threads_soon(before + 1), before + 1, "more than the stream's own");
    close_net(&n);
    cr_expect_leq(threads_soon(before), before);
}

/* Small ones go without, large ones end theirs. */
Test(threads, reformatting_on_an_own_thread_leaves_no_team)
{
    strata_error err;
    const int before = threads_now();
    for (int64_t size = 64; size <= 2048; size *= 4) {
        strata_desc from, to;
        const int64_t dims[] = {1, 8, size, size / 8};
        OK(strata_desc_format(&from, "fp32:nchw", dims, 4, &err));
        OK(strata_desc_format(&to, "fp16:nhwc8", dims, 4, &err));
        float *x = calloc(1, (size_t)strata_desc_bytes(&from));
        void *y = malloc((size_t)strata_desc_bytes(&to));
        OK(strata_reformat(&to, y, &from, x, &err));
        cr_expect_leq(threads_soon(before), before, "%lld bytes",
                      (long long)strata_desc_bytes(&to));
        free(x);
        free(y);
    }
}
#endif
