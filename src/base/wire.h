/* wire.h - the bytes of protocol buffers, without their compiler.
 *
 * Reading borrows the message and copies nothing.  Every length is checked against what is left. */
#ifndef MR_WIRE_H
#define MR_WIRE_H

#include "bytes.h"

enum mr_wire_type { MR_WIRE_VARINT = 0, MR_WIRE_I64 = 1, MR_WIRE_BYTES = 2, MR_WIRE_I32 = 5 };

struct mr_wire {
    const uint8_t *at, *end;
};

struct mr_wire_field {
    uint32_t number;
    enum mr_wire_type type;
    uint64_t value;      /* of VARINT, I64, I32 */
    struct mr_wire body; /* of BYTES: a string, or a message to be read in turn */
};

struct mr_wire mr_wire_over(const void *bytes, size_t len);
static inline size_t mr_wire_left(const struct mr_wire *w)
{
    return (size_t)(w->end - w->at);
}

/* 0, or -EBADMSG when it does not end, or has more than 64 bits. */
int mr_wire_varint(struct mr_wire *w, uint64_t *out);
/* The next field: 1, 0 at the end, -EBADMSG. */
int mr_wire_next(struct mr_wire *w, struct mr_wire_field *out);

void mr_wire_put_varint(struct mr_bytes *b, uint64_t v); /* no field: the number alone */
void mr_wire_put_int(struct mr_bytes *b, uint32_t number, uint64_t v);
void mr_wire_put_i32(struct mr_bytes *b, uint32_t number, uint32_t v);
void mr_wire_put_bytes(struct mr_bytes *b, uint32_t number, const void *bytes, size_t len);
void mr_wire_put_text(struct mr_bytes *b, uint32_t number, const char *text);
/* A message inside: begin, put its fields, end with what begin returned. */
size_t mr_wire_begin(struct mr_bytes *b, uint32_t number);
void mr_wire_end(struct mr_bytes *b, size_t mark);

#endif
