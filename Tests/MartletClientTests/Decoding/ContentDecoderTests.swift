import MartletContent
import MartletCaching
import MartletCore
import MartletHosts
import Testing

@Suite("Decoding of content codings")
struct ContentDecoderTests {
    /// The decoded bytes of a streamed body and the error that ended it.
    private struct Outcome: Equatable {
        var bytes: [UInt8] = []
        var error: ContentDecodingError?
    }

    /// Feeds the pieces in order and takes at most `room` bytes per call. The end comes with the last piece or in a
    /// separate call. A decoder that makes no progress at the end is reported as a `nil` outcome.
    private func streamed(
        _ pieces: [[UInt8]], codings: [ContentCoding], room: Int = 1 << 16, separateEnd: Bool = false,
        limits: DecompressionLimits = .init()
    ) -> Outcome? {
        let decoder = ContentDecoder(codings: codings, limits: limits)
        var outcome = Outcome()
        let all = separateEnd ? pieces + [[]] : pieces
        do throws(ContentDecodingError) {
            for (index, piece) in all.enumerated() {
                let isLast = index == all.count - 1
                var rest = piece[...]
                while true {
                    let part = try decoder.decode(rest, endOfInput: isLast, upTo: room)
                    guard part.bytes.count <= room else { return nil }
                    outcome.bytes += part.bytes
                    rest = rest.dropFirst(part.consumed)
                    if part.isFinished { return isLast && rest.isEmpty ? outcome : nil }
                    if part.consumed == 0, part.bytes.isEmpty {
                        guard !isLast, rest.isEmpty else { return nil }
                        break
                    }
                }
            }
            return nil
        } catch {
            outcome.error = error
            return outcome
        }
    }

    private static let bodies: [(name: ContentCoding, wire: [UInt8])] = [
        (.gzip, Deflated.bytes(Deflated.sample(300), as: .gzip)),
        (.deflate, Deflated.bytes(Deflated.sample(300), as: .zlib)),
        (.deflate, Deflated.bytes(Deflated.sample(300), as: .raw)),
        (.deflate, Deflated.bytes(Deflated.sample(300), as: .raw, level: 0)),
        (.deflate, Deflated.bytes(Deflated.sample(300), as: .zlib, level: 0)),
    ]

    @Test("Every coding decodes whole bodies, single bytes and bodies split at every offset", arguments: 0..<5)
    func splits(index: Int) {
        let (coding, wire) = ContentDecoderTests.bodies[index]
        let expected = Outcome(bytes: Deflated.sample(300), error: nil)
        #expect(streamed([wire], codings: [coding]) == expected)
        #expect(streamed(wire.map { [$0] }, codings: [coding]) == expected)
        #expect(streamed(wire.map { [$0] }, codings: [coding], room: 1, separateEnd: true) == expected)
        for split in 0...wire.count {
            let pieces = [Array(wire[..<split]), Array(wire[split...])]
            #expect(streamed(pieces, codings: [coding]) == expected)
            #expect(streamed(pieces, codings: [coding], room: 7, separateEnd: true) == expected)
        }
    }

    @Test("A body cut at any byte delivers the bytes before the cut and then fails as truncated", arguments: 0..<5)
    func truncation(index: Int) {
        let (coding, wire) = ContentDecoderTests.bodies[index]
        let sample = Deflated.sample(300)
        for cut in 1..<wire.count {
            let outcome = streamed([Array(wire[..<cut])], codings: [coding])
            #expect(outcome?.error == .truncated(coding))
            #expect(outcome.map { sample.starts(with: $0.bytes) } == true)
        }
        // Only the last byte of the trailer is missing: the body is complete, but this is still an error.
        let last = streamed([Array(wire.dropLast())], codings: [.gzip])
        if coding == .gzip { #expect(last?.bytes == sample) }
    }

    @Test("A body of zero bytes decodes to nothing", arguments: ContentCoding.allCases)
    func emptyBody(coding: ContentCoding) {
        #expect(streamed([[]], codings: [coding]) == Outcome())
        #expect(streamed([[], []], codings: [coding, coding]) == Outcome())
    }

    @Test("Compressed empty input decodes to nothing", arguments: Deflated.Format.allCases)
    func compressedNothing(format: Deflated.Format) {
        let coding: ContentCoding = format == .gzip ? .gzip : .deflate
        #expect(streamed([Deflated.bytes([], as: format)], codings: [coding]) == Outcome())
    }

    @Test("Concatenated gzip members are joined, at every split point")
    func members() {
        let wire =
            Deflated.bytes(Array("one ".utf8), as: .gzip) + Deflated.bytes([], as: .gzip)
            + Deflated.bytes(Array("two".utf8), as: .gzip)
        for split in 0...wire.count {
            let pieces = [Array(wire[..<split]), Array(wire[split...])]
            #expect(streamed(pieces, codings: [.gzip]) == Outcome(bytes: Array("one two".utf8), error: nil))
        }
        let cut = streamed([Array(wire.dropLast(3))], codings: [.gzip])
        #expect(cut == Outcome(bytes: Array("one two".utf8), error: .truncated(.gzip)))
    }

    @Test("Zero bytes after a gzip body are accepted as padding")
    func padding() {
        let wire = Deflated.bytes([1, 2, 3], as: .gzip)
        #expect(streamed([wire + [0]], codings: [.gzip]) == Outcome(bytes: [1, 2, 3], error: nil))
        let padded = wire + [UInt8](repeating: 0, count: 5000)
        #expect(streamed(padded.map { [$0] }, codings: [.gzip]) == Outcome(bytes: [1, 2, 3], error: nil))
    }

    @Test(
        "Other bytes after a gzip body are an error",
        arguments: [[0x41], [0, 0, 1], [0x1F, 0x41], [0x1F, 0x8B], [0, 0x1F, 0x8B], [0x0D, 0x0A]] as [[UInt8]]
    )
    func trailingBytes(tail: [UInt8]) {
        let outcome = streamed([Deflated.bytes([1, 2, 3], as: .gzip) + tail], codings: [.gzip])
        #expect(outcome?.bytes == [1, 2, 3])
        #expect(outcome?.error == (tail == [0x1F, 0x8B] ? .truncated(.gzip) : .trailingData(.gzip)))
    }

    @Test("Bytes after a deflate body are an error", arguments: [Deflated.Format.zlib, .raw])
    func trailingBytesAfterDeflate(format: Deflated.Format) {
        let outcome = streamed([Deflated.bytes([1, 2, 3], as: format) + [0]], codings: [.deflate])
        #expect(outcome == Outcome(bytes: [1, 2, 3], error: .trailingData(.deflate)))
    }

    @Test("A wrong checksum and a wrong length are different errors")
    func checksums() {
        let wire = Deflated.bytes(Array("hello".utf8), as: .gzip)
        var wrongChecksum = wire
        wrongChecksum[wire.count - 8] ^= 1
        #expect(
            streamed([wrongChecksum], codings: [.gzip])
                == Outcome(bytes: Array("hello".utf8), error: .checksumMismatch(.gzip)))
        var wrongLength = wire
        wrongLength[wire.count - 1] ^= 1
        #expect(streamed([wrongLength], codings: [.gzip])?.error == .lengthMismatch(.gzip))
        var zlib = Deflated.bytes(Array("hello".utf8), as: .zlib)
        zlib[zlib.count - 1] ^= 1
        #expect(streamed([zlib], codings: [.deflate])?.error == .checksumMismatch(.deflate))
    }

    @Test("Every flipped bit of a gzip body is detected without a trap")
    func flippedBits() {
        let sample = Array("hello hello hello hello".utf8)
        let wire = Deflated.bytes(sample, as: .gzip)
        // The header's time stamp, extra flags and operating system do not affect the body.
        for position in wire.indices where !(4..<10).contains(position) {
            for bit in 0..<8 {
                var damaged = wire
                damaged[position] ^= 1 << UInt8(bit)
                let outcome = streamed([damaged], codings: [.gzip])
                // FTEXT is only a hint.
                if position == 3, bit == 0 { continue }
                #expect(outcome?.error != nil)
            }
        }
    }

    @Test(
        "A body without a gzip header is rejected with that error", arguments: ["<html>", "PK\u{3}\u{4}", "\u{1F}x"])
    func notGzip(body: String) {
        #expect(streamed([Array(body.utf8)], codings: [.gzip])?.error == .invalidHeader(.gzip))
    }

    @Test("A zlib body that needs a preset dictionary is rejected")
    func presetDictionary() {
        let outcome = streamed([[0x78, 0x20, 1, 2, 3, 4, 5]], codings: [.deflate])
        #expect(outcome?.error == .corrupt(.deflate, reason: "a preset dictionary is needed"))
    }

    @Test("Every later call throws the same error again")
    func stickyErrors() {
        let decoder = ContentDecoder(codings: [.gzip])
        for _ in 0..<3 {
            #expect(throws: ContentDecodingError.invalidHeader(.gzip)) {
                try decoder.decode([0x41, 0x42][...], endOfInput: false, upTo: 10)
            }
        }
    }

    @Test("Nested codings are decoded from the last to the first, also byte by byte")
    func nested() throws {
        let sample = Deflated.sample(50_000)
        let inner = Deflated.bytes(sample, as: .gzip)
        let middle = Deflated.bytes(inner, as: .raw)
        let wire = Deflated.bytes(middle, as: .gzip)
        let plan = try ContentCodingPlan(fieldValues: ["gzip, deflate", "x-gzip"])
        #expect(plan.codings == [.gzip, .deflate, .gzip])
        let expected = Outcome(bytes: sample, error: nil)
        #expect(streamed([wire], codings: plan.codings) == expected)
        #expect(streamed([wire], codings: plan.codings, room: 100) == expected)
        #expect(streamed(wire.map { [$0] }, codings: plan.codings, separateEnd: true) == expected)
    }

    @Test("A cut in any layer of nested codings delivers the bytes before it and then fails")
    func nestedTruncation() {
        let sample = Deflated.sample(400)
        let inner = Deflated.bytes(sample, as: .gzip)
        let wire = Deflated.bytes(inner, as: .zlib)
        for cut in 1..<wire.count {
            let outcome = streamed([Array(wire[..<cut])], codings: [.deflate, .gzip])
            #expect(outcome?.error == .truncated(.deflate))
        }
        for cut in 1..<inner.count {
            let outcome = streamed(
                [Deflated.bytes(Array(inner[..<cut]), as: .zlib)], codings: [.deflate, .gzip])
            #expect(outcome?.error == .truncated(.gzip))
            #expect(outcome.map { sample.starts(with: $0.bytes) } == true)
        }
    }

    @Test("If two layers have wrong checksums, the inner layer's error is reported, however the input is split")
    func nestedChecksums() {
        var inner = Deflated.bytes(Deflated.sample(400), as: .zlib)
        inner[inner.count - 1] ^= 1
        var wire = Deflated.bytes(inner, as: .gzip)
        wire[wire.count - 8] ^= 1
        let expected = Outcome(bytes: Deflated.sample(400), error: .checksumMismatch(.deflate))
        #expect(streamed([wire], codings: [.gzip, .deflate]) == expected)
        #expect(streamed(wire.map { [$0] }, codings: [.gzip, .deflate]) == expected)
    }

    @Test(
        "Bytes of an inner coding are delivered before an error of the outer coding, for any output size"
    )
    func nestedErrorComesLast() {
        let zeros = [UInt8](repeating: 0, count: 2000)
        var wire = Deflated.bytes(Deflated.bytes(zeros, as: .raw), as: .gzip)
        wire[wire.count - 8] ^= 1
        let expected = Outcome(bytes: zeros, error: .checksumMismatch(.gzip))
        for room in [1, 7, 300, 4096] {
            #expect(streamed([wire], codings: [.gzip, .deflate], room: room) == expected, "room for \(room)")
        }
    }

    @Test("Without codings the bytes are copied")
    func identity() {
        let sample = Deflated.sample(1000)
        #expect(streamed([sample], codings: [], room: 64) == Outcome(bytes: sample, error: nil))
        #expect(streamed([[]], codings: []) == Outcome())
        let limits = DecompressionLimits(maximumByteCount: 1)
        #expect(streamed([sample], codings: [], limits: limits) == Outcome(bytes: sample, error: nil))
    }
}
