/* Implements text_stream.h. One U+FFFD replaces the longest valid start of a character (Unicode, 3.9). */
#include "text_stream.h"

/* Returns the length of the character that starts with this byte; 0 if no character does. */
static size_t length_after(unsigned char lead)
{
    return lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
}

/* Whether `next` continues the character whose first `count` bytes are held. The range of the second byte excludes overlong
 * forms, surrogates and numbers above U+10FFFF. */
static bool continues(const unsigned char *held, size_t count, unsigned char next)
{
    unsigned char least = 0x80, most = 0xbf;
    if (count == 1) {
        least = held[0] == 0xe0 ? 0xa0 : held[0] == 0xf0 ? 0x90 : 0x80;
        most = held[0] == 0xed ? 0x9f : held[0] == 0xf4 ? 0x8f : 0xbf;
    }
    return next >= least && next <= most;
}

static bool put(text_stream *stream, const void *bytes, size_t count)
{
    stream->held_count = 0;
    return fwrite(bytes, 1, count, stream->out) == count;
}

static bool put_replacement(text_stream *stream)
{
    return put(stream, "\xef\xbf\xbd", 3);
}

bool text_stream_write(text_stream *stream, const char *bytes, size_t count)
{
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        unsigned char next = (unsigned char)bytes[i];
        if (stream->held_count > 0 && !continues(stream->held, stream->held_count, next))
            ok &= put_replacement(stream);
        stream->held[stream->held_count++] = next;
        size_t length = length_after(stream->held[0]);
        if (length == 0)
            ok &= put_replacement(stream);
        else if (stream->held_count == length)
            ok &= put(stream, stream->held, length);
    }
    return fflush(stream->out) == 0 && ok;
}

bool text_stream_end(text_stream *stream)
{
    bool ok = stream->held_count == 0 || put_replacement(stream);
    return fflush(stream->out) == 0 && ok;
}
