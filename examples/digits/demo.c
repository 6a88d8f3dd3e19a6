/* SPDX-License-Identifier: Apache-2.0
 *
 * The application's side of Strata: load an INI network, build an engine, run it on every
 * test digit, show some of them beside the ranked answer, and the accuracy and time.
 *
 *   demo FOLDER [DEVICE]
 *
 * FOLDER holds digits.ini, digits.safetensors and the two IDX files; DEVICE is host
 * (default) or cuda:0.
 */
#include <strata/strata.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10, SHOWN = 6 };

struct digits {
    unsigned char *images, *labels; /* count x PIXELS, count */
    int count;
};

struct model {
    strata_registry *registry;
    strata_handle *handle;
    strata_network *network;
    strata_engine *engine;
    strata_context *context;
    int image, prob; /* bindings */
};

static int read_file(const char *folder, const char *name, unsigned char **out,
                     long *size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    int ok = f && fseek(f, 0, SEEK_END) == 0 && (*size = ftell(f)) >= 0;
    if (ok) {
        rewind(f);
        *out = malloc((size_t)*size + 1);
        ok = *out && fread(*out, 1, (size_t)*size, f) == (size_t)*size;
    }
    if (!ok)
        fprintf(stderr, "demo: cannot read %s\n", path);
    if (f)
        fclose(f);
    return ok;
}

/* IDX: 16 bytes of header before the images, 8 before the labels. */
static int read_digits(struct digits *d, const char *folder)
{
    long image_bytes = 0, label_bytes = 0;
    if (!read_file(folder, "digits-test-images.idx", &d->images, &image_bytes) ||
        !read_file(folder, "digits-test-labels.idx", &d->labels, &label_bytes))
        return 0;
    d->count = (int)(label_bytes - 8);
    if (d->count > 0 && image_bytes == 16 + (long)d->count * PIXELS)
        return 1;
    fprintf(stderr, "demo: the images and labels in %s do not belong together\n", folder);
    return 0;
}

static int open_model(struct model *m, const char *folder, const char *device,
                      strata_error *err)
{
    char path[4096];
    int status;
    snprintf(path, sizeof path, "%s/digits.ini", folder);
    if ((status = strata_create(&m->handle, device, err)) ||
        (status = strata_registry_create(&m->registry, NULL, err)) ||
        (status = strata_network_load(&m->network, path, m->registry, NULL, err)) ||
        (status = strata_engine_build(&m->engine, m->handle, m->network, err)) ||
        (status = strata_context_create(&m->context, m->engine, m->handle, err)))
        return status;
    m->image = strata_engine_find(m->engine, "image");
    m->prob = strata_engine_find(m->engine, "prob");
    return strata_context_prepare(m->context, err);
}

static void close_model(struct model *m)
{
    strata_context_destroy(m->context);
    strata_engine_destroy(m->engine);
    strata_network_destroy(m->network);
    strata_registry_destroy(m->registry);
    strata_destroy(m->handle);
}

/* On every device: in, run, out. */
static int classify(struct model *m, float prob[CLASSES], const unsigned char *pixels,
                    strata_error *err)
{
    const strata_image image = {sizeof image, pixels, SIDE, SIDE, 1, 0};
    float input[PIXELS];
    int status;
    if ((status = strata_engine_convert_image(m->engine, m->image, input, &image, err)) ||
        (status = strata_copy_in(m->context, m->image, input, err)) ||
        (status = strata_context_run(m->context, err)))
        return status;
    return strata_copy_out(m->context, m->prob, prob, err);
}

static void rank(int order[CLASSES], const float *prob)
{
    for (int i = 0; i < CLASSES; i++) {
        int at = i;
        for (; at > 0 && prob[order[at - 1]] < prob[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

/* Two characters a pixel, as a character is about twice as high as wide. */
static void show(const unsigned char *pixels, int label, const float *prob)
{
    static const char ink[] = " .:-=+*#%@";
    int order[CLASSES];
    rank(order, prob);
    for (int y = 0; y < SIDE; y++) {
        printf("   ");
        for (int x = 0; x < SIDE; x++) {
            char c = ink[pixels[y * SIDE + x] * 9 / 240];
            printf("%c%c", c, c);
        }
        if (y == 1)
            printf("   answer %d, written %d%s", order[0], label,
                   order[0] == label ? "" : "   <- wrong");
        if (y >= 3 && y < 6)
            printf("   %d. %d %6.2f %%", y - 2, order[y - 3],
                   100.0 * (double)prob[order[y - 3]]);
        printf("\n");
    }
    printf("\n");
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int run_all(struct model *m, const struct digits *d, strata_error *err)
{
    int right = 0, status;
    double seconds = 0;
    float prob[CLASSES];
    for (int i = 0; i < d->count; i++) {
        const unsigned char *pixels = d->images + 16 + (long)i * PIXELS;
        int order[CLASSES], label = d->labels[8 + i];
        double start = now();
        if ((status = classify(m, prob, pixels, err)) != STRATA_OK)
            return status;
        seconds += now() - start;
        rank(order, prob);
        right += order[0] == label;
        if (i % (d->count / SHOWN + 1) == 0)
            show(pixels, label, prob);
    }
    printf("%d of %d right: %.2f %%; %.1f us an image on %s\n", right, d->count,
           100.0 * right / d->count, 1e6 * seconds / d->count,
           strata_device_name(m->handle));
    return STRATA_OK;
}

int main(int argc, char **argv)
{
    static strata_error err;
    struct digits d = {0};
    struct model m = {0};
    const char *folder = argc > 1 ? argv[1] : ".";
    int ok = read_digits(&d, folder);
    if (ok && (open_model(&m, folder, argc > 2 ? argv[2] : NULL, &err) != STRATA_OK ||
               run_all(&m, &d, &err) != STRATA_OK)) {
        fprintf(stderr, "demo: %s\n", err.message);
        ok = 0;
    }
    close_model(&m);
    free(d.images);
    free(d.labels);
    return ok ? 0 : 1;
}
