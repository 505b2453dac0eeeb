import MartletContent
import MartletCore

extension FuzzEntry {
    /// Compressed bodies.
    ///
    /// Control 0: the codings (`0` gzip, `1` deflate, `2` gzip twice, `3` deflate in gzip). Control 1: bit 0 allows
    /// 1,000 bytes instead of 256 KiB, and bit 1 limits the ratio to 2:1 from 64 bytes on. Control 2: the output buffer
    /// for a body in pieces, in bytes.
    ///
    /// The output and the error depend neither on how the bytes arrive nor on the buffer, and the output stays within
    /// the limit. The ratio is checked only between calls, so with it only the limits are checked. The payload itself,
    /// compressed in pieces, decodes to itself.
    static let contentCoding = FuzzEntry("content-coding") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let codings = codings(input[0])
        let limit = input.isSet(0, at: 1) ? 1000 : 256 * 1024
        let watchesRatio = input.isSet(1, at: 1)
        let limits = DecompressionLimits(
            maximumByteCount: limit, maximumRatio: watchesRatio ? 2 : 100,
            ratioThreshold: watchesRatio ? 64 : 10 << 20)
        let room = max(1, Int(input[2]))
        let arrivals = input.arrivals(from: 3)
        let whole = try DecodedBody(input.payload, arrivals[0], codings, limits, room: 64 * 1024)
        for (other, room) in zip(arrivals.dropFirst(), [64 * 1024, room]) {
            let pieces = try DecodedBody(input.payload, other, codings, limits, room: room)
            if watchesRatio { continue }
            try require(pieces == whole, "\(pieces) when \(other), and \(whole) at once")
        }
        try checkStored(input.payload)
        for arrival in arrivals { try checkRoundTrip(input.payload, arrival) }
    }

    /// Checks that any bytes, compressed as they arrive, decode to themselves.
    private static func checkRoundTrip(_ bytes: [UInt8], _ arrivals: Arrivals) throws(FuzzFinding) {
        for compression in [BodyCompression.gzip, .deflate] {
            var (encoded, position, isFinished) = ([UInt8](), 0, false)
            do throws(ContentEncodingError) {
                let encoder = try ContentEncoder(compression)
                for end in arrivals {
                    while position < end || (end == bytes.count && !isFinished) {
                        let piece = try encoder.encode(bytes[position..<end], endOfInput: end == bytes.count)
                        encoded += piece.bytes
                        position += piece.consumed
                        isFinished = piece.isFinished
                    }
                }
            } catch { throw FuzzFinding("\(error)") }
            let decoded = try DecodedBody(
                encoded, .whole(encoded.count), [compression.coding], DecompressionLimits(), room: 4096)
            try require(
                decoded.error == nil && decoded.bytes == bytes, "a body in \(compression.coding) is \(decoded)")
        }
    }

    private static func codings(_ control: UInt8) -> [ContentCoding] {
        switch control {
        case UInt8(ascii: "1"): [.deflate]
        case UInt8(ascii: "2"): [.gzip, .gzip]
        case UInt8(ascii: "3"): [.gzip, .deflate]
        default: [.gzip]
        }
    }

    /// Checks that any bytes in a stored block of raw deflate (RFC 1951 §3.2.4) decode to themselves.
    private static func checkStored(_ bytes: [UInt8]) throws(FuzzFinding) {
        let stored = bytes.prefix(65_535)
        let count = UInt16(truncatingIfNeeded: stored.count)
        let low = UInt8(truncatingIfNeeded: count)
        let high = UInt8(truncatingIfNeeded: count >> 8)
        let body = [0x01, low, high, ~low, ~high] + stored
        let decoded = try DecodedBody(body, .whole(body.count), [.deflate], DecompressionLimits(), room: 4096)
        try require(
            decoded.error == nil && decoded.bytes.elementsEqual(stored), "a stored block is \(decoded)")
    }
}
