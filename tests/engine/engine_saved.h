/* SPDX-License-Identifier: Apache-2.0
 *
 * Engines saved, altered and loaded, on the device that STRATA_TEST_DEVICE names.
 */
#ifndef TESTS_ENGINE_ENGINE_SAVED_H
#define TESTS_ENGINE_ENGINE_SAVED_H

#include "engine/file/stored.h"
#include "tests/engine/engine_session.h"

static char ini[300], file[300], again[300];

static inline void open_files(void)
{
    scratch_make();
    snprintf(ini, sizeof ini, "%s/net.ini", scratch);
    snprintf(file, sizeof file, "%s/net.engine", scratch);
    snprintf(again, sizeof again, "%s/again.engine", scratch);
}

static inline void start(struct session *s)
{
    int status = session_open(s, getenv("STRATA_TEST_DEVICE"), NULL);
    cr_assert_eq(status, STRATA_OK, "%s", s->err.message);
}

static inline void build(struct session *s, const char *path, const char *const *set,
                         size_t n)
{
    strata_network_options options = {sizeof options, set, n, NULL, 0};
    start(s);
    cr_assert_eq(strata_network_load(&s->network, path, s->registry, &options, &s->err),
                 STRATA_OK, "%s", s->err.message);
    cr_assert_eq(strata_engine_build(&s->engine, s->handle, s->network, &s->err),
                 STRATA_OK, "%s", s->err.message);
}

static inline int load(struct session *s, const char *path)
{
    start(s);
    return strata_engine_load(&s->engine, s->handle, s->registry, path, &s->err);
}

static inline void save(struct session *s, const char *path)
{
    cr_assert_eq(strata_engine_save(s->engine, path, &s->err), STRATA_OK, "%s",
                 s->err.message);
}

/* Build from a text and save as `file`. */
static inline void save_text(const char *text, const char *const *set, size_t n)
{
    struct session s;
    build(&s, spill_text("net.ini", text), set, n);
    save(&s, file);
    release(&s);
}

static const char branches[] =
    "[network]\nformat = 1\nname = \"a $$5 #net\"\noutputs = cat, act\n"
    "output_formats = fp32:nhwc, fp16:nchw\n"
    "[input x]\nshape = 2 x 3 x 9 x 7\nmean = 1, 2, 3\nchannels = bgr\n"
    "[input y]\nshape = 2 x 5 x 9 x 7\nformat = fp16:nhwc8\n"
    "[weights w]\nrandom = 7\n"
    "[layer conv]\ntype = Convolution\nfilters = 5\nkernel = 3x3\npad = 1\n"
    "inputs = x\nweights = w:conv\nbias = zeros\n"
    "[layer bn]\ntype = Scale\nscale = w:s\nshift = 0.1\n"
    "[layer sum]\ntype = ElementWise\ninputs = bn, y\nop = sum\n"
    "[layer act]\ntype = Activation\nkind = leaky_relu\nalpha = 0.3\n"
    "[layer second]\ntype = Convolution\nfilters = 4\nkernel = 1x1\ninputs = act\n"
    "weights = w:second\n"
    "[layer cat]\ntype = Concatenation\naxis = 1\ninputs = second, act, y\n";

static const char batched[] =
    "[network]\nformat = 1\noutputs = act\n[profile]\nN = 1, 3, 8\n"
    "[input x]\nshape = N x 5 x 9 x 7\n[weights w]\nrandom = 7\n"
    "[layer conv]\ntype = Convolution\nfilters = 6\nkernel = 3x3\n"
    "weights = w:conv\n[layer act]\ntype = Activation\nkind = elu\n";

/* Rewrite the saved file with `from` replaced by `to` in one section; hashes are right.
 */
static inline void alter(const char *section, const char *from, const char *to)
{
    struct engine_file f;
    struct engine_section sections[ENGINE_FILE_SECTIONS];
    strata_error err = {0};
    char *text = NULL;
    cr_assert_eq(engine_file_open(&f, file, &err), STRATA_OK, "%s", err.message);
    memcpy(sections, f.sections, sizeof sections);
    for (size_t i = 0; i < f.n_sections; i++) {
        if (strcmp(f.sections[i].name, section) != 0)
            continue;
        size_t size = f.sections[i].size, n = strlen(from), m = strlen(to);
        text = calloc(1, size + m + 1);
        memcpy(text, f.sections[i].data, size);
        char *at = memmem(text, size, from, n);
        cr_assert(at != NULL, "section %s has no '%s':\n%s", section, from, text);
        memmove(at + m, at + n, (size_t)(text + size - (at + n)));
        memcpy(at, to, m);
        sections[i].data = text;
        sections[i].size = size - n + m;
    }
    cr_assert(text != NULL, "no section %s", section);
    cr_assert_eq(engine_file_write(again, sections, f.n_sections, "1.0.0", &err),
                 STRATA_OK, "%s", err.message);
    free(text);
    engine_file_close(&f);
}

#endif /* TESTS_ENGINE_ENGINE_SAVED_H */
