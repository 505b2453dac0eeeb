import Martlet
import Testing

@testable import MartletContent

@Suite("Encoders of content codings")
struct ContentEncoderTests {
    /// Compresses a body in pieces of the given sizes.
    private func encoded(_ bytes: [UInt8], _ compression: BodyCompression, sizes: [Int]) throws -> [UInt8] {
        let encoder = try ContentEncoder(compression)
        var result: [UInt8] = []
        for piece in Pieces(bytes, sizes: sizes).pieces {
            var rest = piece[...]
            while !rest.isEmpty {
                let step = try encoder.encode(rest, endOfInput: false)
                #expect(!step.isFinished && (step.consumed > 0 || !step.bytes.isEmpty))
                result += step.bytes
                rest = rest.dropFirst(step.consumed)
            }
        }
        while true {
            let step = try encoder.encode([], endOfInput: true)
            result += step.bytes
            if step.isFinished { return result }
            #expect(!step.bytes.isEmpty)
        }
    }

    @Test("Every coding decodes to the same bytes, however the input is split", arguments: BodyCompression.all)
    func roundTrip(compression: BodyCompression) throws {
        let bodies = [[], [7], lines(1000), lines(300_000), noise + noise + noise, Array(repeating: 0, count: 1 << 20)]
        for body in bodies {
            for sizes in [[1 << 30], [1, 4095, 7], [32 << 10], [256 << 10, 1]] {
                let bytes = try encoded(body, compression, sizes: sizes)
                #expect(try decoded(bytes, compression.coding.rawValue) == body, "\(body.count) bytes in \(sizes)")
            }
        }
    }

    @Test("A short body may be split at any offset", arguments: BodyCompression.all)
    func cuts(compression: BodyCompression) throws {
        let body = lines(120)
        for cut in 1..<body.count {
            let bytes = try encoded(body, compression, sizes: [cut, body.count])
            #expect(try decoded(bytes, compression.coding.rawValue) == body, "cut at \(cut)")
        }
    }

    @Test(
        "Any level gives a valid body, and the level has an effect",
        arguments: BodyCompression.all)
    func levels(compression: BodyCompression) throws {
        let body = lines(200_000)
        var sizes: [Int] = []
        for level in [Int.min, 1, 6, 9, .max] {
            var leveled = compression
            leveled.level = level
            let bytes = try #require(try leveled.compressed(body))
            #expect(try decoded(bytes, compression.coding.rawValue) == body)
            sizes.append(bytes.count)
        }
        #expect(sizes[4] != sizes[1])
    }

    @Test("Bytes that would not become smaller are not compressed", arguments: BodyCompression.all)
    func incompressible(compression: BodyCompression) throws {
        for body in [[], [1], Array("short".utf8), noise] { #expect(try compression.compressed(body) == nil) }
        #expect(try compression.compressed(lines(400)) != nil)
    }

    private static let fieldValues: [(given: [String], applied: String?, notApplied: String?)] = [
        ([], "gzip", nil),
        (["gzip"], "gzip", nil),
        ([" X-GZip "], "gzip", nil),
        (["br"], "br, gzip", "br"),
        (["br, gzip"], "br, gzip", "br"),
        (["br", "gzip"], "br, gzip", "br"),
        (["gzip, br"], "gzip, br, gzip", "gzip, br"),
        (["gzip, gzip"], "gzip, gzip", "gzip"),
        ([", ,", ""], "gzip", nil),
        (["aes128gcm ,\tfoo"], "aes128gcm, foo, gzip", "aes128gcm, foo"),
    ]

    @Test("Content-Encoding lists the caller's codings and this one, unless the caller's list ends with it")
    func fields() {
        for (given, applied, notApplied) in Self.fieldValues {
            #expect(BodyCompression.gzip.fieldValue(after: given, isApplied: true) == applied, "\(given)")
            #expect(BodyCompression.gzip.fieldValue(after: given, isApplied: false) == notApplied, "\(given)")
        }
    }
}
