/* SPDX-License-Identifier: Apache-2.0
 *
 * A pool of workers over an engine for each device: each thread has a handle, a stream
 * and a context of its own and takes the next request as soon as it is free. The requests
 * are the digits of the digits example; every answer is checked against the label.
 *
 *   serve FOLDER [DEVICE,... [WORKERS [REQUESTS]]]
 *
 * FOLDER is examples/digits; devices are host (default), or cuda:0,cuda:1 and so on, to
 * which workers are dealt in turn.
 */
#include <strata/strata.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SIDE = 8,
    PIXELS = SIDE * SIDE,
    CLASSES = 10,
    IMAGE_HEADER = 16,
    LABEL_HEADER = 8,
    MAX_WORKERS = 256,
    MAX_DEVICES = 16
};

struct queue { /* of requests: an image each */
    const unsigned char *images, *labels;
    long n_images, n_requests;
    atomic_long next, right;
};

struct site {
    const char *device;
    strata_handle *handle;
    strata_engine *engine;
};

struct pool {
    strata_registry *registry;
    strata_network *network;
    struct site sites[MAX_DEVICES];
    int n_sites;
};

struct worker {
    pthread_t thread;
    struct queue *queue;
    const struct site *site;
    strata_handle *handle;
    strata_context *context;
    long served;
    int status;
    strata_error err;
};

/* ---- a worker ---------------------------------------------------------------------- */

static int open_worker(struct worker *w)
{
    const struct site *s = w->site;
    int status =
        strata_create(&w->handle, s->device, &w->err); /* brings a stream along */
    if (status == STRATA_OK)
        status = strata_context_create(&w->context, s->engine, w->handle, &w->err);
    return status != STRATA_OK ? status : strata_context_prepare(w->context, &w->err);
}

static void close_worker(struct worker *w)
{
    strata_context_destroy(w->context);
    strata_destroy(w->handle);
}

static int answer(struct worker *w, const unsigned char *image, int *digit)
{
    const strata_image grey = {sizeof grey, image, SIDE, SIDE, 1, 0};
    float x[PIXELS], y[CLASSES];
    int status = strata_engine_convert_image(w->site->engine, 0, x, &grey, &w->err);
    if (status == STRATA_OK)
        status = strata_copy_in(w->context, 0, x, &w->err);
    if (status == STRATA_OK)
        status = strata_context_run(w->context, &w->err);
    if (status == STRATA_OK)
        status = strata_copy_out(w->context, 1, y, &w->err);
    *digit = 0;
    for (int k = 1; k < CLASSES && status == STRATA_OK; k++)
        *digit = y[k] > y[*digit] ? k : *digit;
    return status;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct queue *q = w->queue;
    long request;
    while ((request = atomic_fetch_add(&q->next, 1)) < q->n_requests) {
        const long image = request % q->n_images;
        int digit;
        w->status = answer(w, q->images + image * PIXELS, &digit);
        if (w->status != STRATA_OK)
            break;
        atomic_fetch_add(&q->right, digit == q->labels[image]);
        w->served++;
    }
    return NULL;
}

/* ---- the pool ---------------------------------------------------------------------- */

/* What of the workers could be started, run to the end; the first failure. */
static int run_pool(struct worker *workers, int n)
{
    int started = 0, status = STRATA_OK;
    for (; started < n && status == STRATA_OK; started++) {
        struct worker *w = &workers[started];
        status = open_worker(w);
        if (status == STRATA_OK && pthread_create(&w->thread, NULL, work, w) != 0) {
            snprintf(w->err.message, sizeof w->err.message, "cannot start a thread");
            status = STRATA_ENOMEM;
        }
        if (status != STRATA_OK) {
            fprintf(stderr, "serve: worker %d: %s\n", started, w->err.message);
            close_worker(w);
            break;
        }
    }
    for (int i = 0; i < started; i++) {
        pthread_join(workers[i].thread, NULL);
        close_worker(&workers[i]);
        if (workers[i].status != STRATA_OK)
            fprintf(stderr, "serve: worker %d: %s\n", i, workers[i].err.message);
        status = status != STRATA_OK ? status : workers[i].status;
    }
    return status;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int serve(struct queue *q, const struct pool *p, int n)
{
    struct worker *workers = calloc((size_t)n, sizeof *workers);
    const double begin = now();
    if (!workers)
        return STRATA_ENOMEM;
    for (int i = 0; i < n; i++) {
        workers[i].queue = q;
        workers[i].site = &p->sites[i % p->n_sites];
    }
    int status = run_pool(workers, n);
    long least = q->n_requests, most = 0;
    for (int i = 0; i < n; i++) {
        least = workers[i].served < least ? workers[i].served : least;
        most = workers[i].served > most ? workers[i].served : most;
    }
    if (status == STRATA_OK)
        printf("%ld requests by %d workers (%ld to %ld each) in %.2f s; %ld right\n",
               q->n_requests, n, least, most, now() - begin, atomic_load(&q->right));
    free(workers);
    return status;
}

/* ---- set-up ------------------------------------------------------------------------ */

static unsigned char *read_file(const char *folder, const char *name, long *size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    unsigned char *bytes = NULL;
    if (f && fseek(f, 0, SEEK_END) == 0 && (*size = ftell(f)) > 0)
        bytes = malloc((size_t)*size);
    if (f)
        rewind(f);
    if (bytes && fread(bytes, 1, (size_t)*size, f) != (size_t)*size) {
        free(bytes);
        bytes = NULL;
    }
    if (f)
        fclose(f);
    if (!bytes)
        fprintf(stderr, "serve: cannot read %s\n", path);
    return bytes;
}

static int open_pool(struct pool *p, const char *folder, strata_error *err)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/digits.ini", folder);
    int status = strata_registry_create(&p->registry, NULL, err);
    if (status == STRATA_OK)
        status = strata_network_load(&p->network, path, p->registry, NULL, err);
    for (int i = 0; i < p->n_sites && status == STRATA_OK; i++) {
        struct site *s = &p->sites[i];
        status = strata_create(&s->handle, s->device, err);
        if (status == STRATA_OK)
            status = strata_engine_build(&s->engine, s->handle, p->network, err);
    }
    return status;
}

static void close_pool(struct pool *p)
{
    for (int i = 0; i < p->n_sites; i++) {
        strata_engine_destroy(p->sites[i].engine);
        strata_destroy(p->sites[i].handle);
    }
    strata_network_destroy(p->network);
    strata_registry_destroy(p->registry);
}

/* Cuts the list up. */
static int serve_digits(struct queue *q, const char *folder, char *devices, int n)
{
    struct pool p = {0};
    strata_error err = {0};
    char *rest = devices;
    for (char *one; p.n_sites < MAX_DEVICES && (one = strtok_r(rest, ",", &rest));)
        p.sites[p.n_sites++].device = one;
    int status = p.n_sites > 0 ? open_pool(&p, folder, &err) : STRATA_EINVAL;
    if (status != STRATA_OK)
        fprintf(stderr, "serve: %s\n", err.message);
    else
        status = serve(q, &p, n);
    close_pool(&p);
    return status;
}

int main(int argc, char **argv)
{
    long image_bytes = 0, label_bytes = 0;
    const int workers = argc > 3 ? atoi(argv[3]) : 4;
    struct queue q = {.n_requests = argc > 4 ? atol(argv[4]) : 10000};
    if (argc < 2 || argc > 5 || workers < 1 || workers > MAX_WORKERS ||
        q.n_requests < 1) {
        fputs("usage: serve FOLDER [DEVICE,... [WORKERS [REQUESTS]]]\n", stderr);
        return 2;
    }
    unsigned char *images = read_file(argv[1], "digits-test-images.idx", &image_bytes);
    unsigned char *labels = read_file(argv[1], "digits-test-labels.idx", &label_bytes);
    char host[] = "host";
    int status = STRATA_EIO;
    if (images && labels) {
        q.images = images + IMAGE_HEADER;
        q.labels = labels + LABEL_HEADER;
        q.n_images = label_bytes - LABEL_HEADER;
        if (q.n_images > 0 && image_bytes == IMAGE_HEADER + q.n_images * PIXELS)
            status = serve_digits(&q, argv[1], argc > 2 ? argv[2] : host, workers);
        else
            fprintf(stderr, "serve: the images and labels do not belong together\n");
    }
    free(images);
    free(labels);
    return status == STRATA_OK ? 0 : 1;
}
