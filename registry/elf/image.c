/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes of a shared object by their place in the file, or by their address.
 */
#include "registry/elf/image.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

bool elf_read(const struct elf_source *s, uint64_t at, void *out, size_t n)
{
    if (at > s->size || n > s->size - at)
        return false;
    if (s->fd < 0) {
        if (n > 0)
            memcpy(out, s->bytes + at, n);
        return true;
    }
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(s->fd, (char *)out + done, n - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            *s->failed = errno;
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    return true;
}

int elf_damaged(strata_error *err, const char *what)
{
    return error_set(err, STRATA_EMODULE, "damaged: its %s; install it again", what);
}

const Elf64_Phdr *elf_segment(const struct image *m, uint64_t at, uint64_t n,
                              bool in_file)
{
    for (size_t i = 0; i < m->n_segments; i++) {
        const Elf64_Phdr *p = &m->segments[i];
        uint64_t size = in_file ? p->p_filesz : p->p_memsz;
        if (p->p_type == PT_LOAD && at >= p->p_vaddr && at - p->p_vaddr <= size &&
            n <= size - (at - p->p_vaddr))
            return p;
    }
    return NULL;
}

bool elf_read_image(struct image *m, uint64_t at, void *out, size_t n)
{
    const Elf64_Phdr *p = elf_segment(m, at, n, true);
    const uint64_t offset = p ? p->p_offset + (at - p->p_vaddr) : 0;
    if (!p || offset > m->source->size || n > m->source->size - offset)
        return false;
    if (offset < m->window_at || offset + n > m->window_at + m->window_size) {
        m->window_size = m->source->size - offset < WINDOW
                             ? (size_t)(m->source->size - offset)
                             : WINDOW;
        m->window_at = offset;
        if (!elf_read(m->source, offset, m->window, m->window_size)) {
            m->window_size = 0;
            return false;
        }
    }
    memcpy(out, m->window + (offset - m->window_at), n);
    return true;
}

bool elf_is_code(const struct image *m, uint64_t at)
{
    const Elf64_Phdr *p = elf_segment(m, at, 1, true);
    return p && (p->p_flags & PF_X);
}

bool elf_inside(const struct image *m, int address, int size, uint64_t at)
{
    return m->has[address] && at >= m->value[address] &&
           at - m->value[address] < m->value[size];
}

bool elf_is_name(const struct image *m, uint64_t offset)
{
    return offset < m->value[STRSZ];
}
