import MartletContent
import MartletCore
import MartletHosts
import Testing

@Suite("Decompression bombs")
struct DecompressionBombTests {
    /// Decodes in pieces of 64 KiB and discards the output. Returns the number of decoded bytes and the error.
    private func drained(
        _ wire: [UInt8], codings: [ContentCoding], limits: DecompressionLimits = .init()
    ) -> (count: Int, error: ContentDecodingError?) {
        let decoder = ContentDecoder(codings: codings, limits: limits)
        var count = 0
        var rest = wire[...]
        do throws(ContentDecodingError) {
            while true {
                let piece = try decoder.decode(rest, endOfInput: true, upTo: 64 * 1024)
                count += piece.bytes.count
                rest = rest.dropFirst(piece.consumed)
                if piece.isFinished { return (count, nil) }
            }
        } catch {
            return (count, error)
        }
    }

    private func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    @Test("A body of zeros is stopped soon after the threshold", arguments: [Deflated.Format.gzip, .zlib, .raw])
    func ratio(format: Deflated.Format) {
        let wire = Deflated.bytes(zeros(40 << 20), as: format)
        let (count, error) = drained(wire, codings: [format == .gzip ? .gzip : .deflate])
        #expect(error == .ratioExceeded(limit: 100))
        #expect(count <= 10 << 20)
        #expect(count >= (10 << 20) - 128 * 1024)
    }

    @Test("The same body below the threshold is accepted")
    func belowThreshold() {
        let (count, error) = drained(Deflated.bytes(zeros(10 << 20), as: .gzip), codings: [.gzip])
        #expect(error == nil)
        #expect(count == 10 << 20)
    }

    @Test("The ratio and the threshold are configurable")
    func ownRatio() {
        let wire = Deflated.bytes(zeros(40 << 20), as: .gzip)
        let patient = drained(wire, codings: [.gzip], limits: DecompressionLimits(maximumRatio: 2000))
        #expect(patient.error == nil)
        #expect(patient.count == 40 << 20)
        let strict = drained(
            wire, codings: [.gzip], limits: DecompressionLimits(maximumRatio: 10, ratioThreshold: 1000))
        #expect(strict.error == .ratioExceeded(limit: 10))
        #expect(strict.count <= 64 * 1024)
    }

    @Test("A limit on the decoded size is exact to the byte", arguments: [0, 1, 999, 1000, 1001, 70_000])
    func sizeLimit(limit: Int) {
        let limits = DecompressionLimits(maximumByteCount: limit)
        for size in [0, 1, 1000, 70_000] {
            let wire = Deflated.bytes(Deflated.sample(size), as: .gzip)
            let (count, error) = drained(wire, codings: [.gzip], limits: limits)
            #expect(count == min(size, limit))
            #expect(error == (size > limit ? .tooLarge(limit: limit) : nil))
        }
    }

    @Test("A bomb within a bomb is stopped by the ratio of its outer layer")
    func nestedBomb() {
        var wire = Deflated.bytes(zeros(40 << 20), as: .gzip)
        for _ in 0..<4 { wire = Deflated.bytes(wire, as: .gzip) }
        let (count, error) = drained(wire, codings: [.gzip, .gzip, .gzip, .gzip, .gzip])
        #expect(error == .ratioExceeded(limit: 100))
        #expect(count <= 10 << 20)
    }

    @Test("An outer layer that expands is stopped even if the inner layer decodes to nothing")
    func emptyBomb() {
        // A million empty members: 20 MB of gzip that decode to no bytes, compressed to 60 KB.
        let member = Deflated.bytes([], as: .gzip)
        let members = [[UInt8]](repeating: member, count: 1_000_000).flatMap { $0 }
        let wire = Deflated.bytes(members, as: .gzip)
        let (count, error) = drained(wire, codings: [.gzip, .gzip])
        #expect(count == 0)
        #expect(error == .ratioExceeded(limit: 100))
    }
}
