import MartletWire

extension FuzzEntry {
    /// Chunked bodies. Control 0: limits; bit 3 receives payload directly, as into a caller's buffer.
    ///
    /// The payload and the end do not depend on how the bytes arrive, and equal those of a plain reader for a complete
    /// body. The payload survives encoding and decoding.
    static let chunkedBody = FuzzEntry("chunked-body") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let limits = WireLimits(input, at: 0)
        let arrivals = input.arrivals(from: 1)
        let whole = try ChunkedReading(input.payload, arrivals[0], limits, isDirect: false)
        for other in arrivals.dropFirst() {
            let reading = try ChunkedReading(input.payload, other, limits, isDirect: input.isSet(3, at: 0))
            try require(reading == whole, "\(reading) when \(other), and \(whole) at once")
        }
        if whole.isComplete {
            let plain = PlainChunkedBody(input.payload[...])
            try require(
                plain?.payload == whole.payload,
                "the payload is \(whole.payload), read plainly \(plain as Any)")
            try require(
                plain?.byteCount == whole.consumed,
                "the body ends at \(whole.consumed), plainly \(plain as Any)")
            if let trailers = whole.trailers { try FieldRules.check(trailers) }
        }
        try checkRoundTrip(input)
    }

    /// Encodes the payload in pieces and decodes the result.
    private static func checkRoundTrip(_ input: FuzzInput) throws(FuzzFinding) {
        var encoder = ChunkEncoder()
        var framed: [UInt8] = []
        var start = 0
        for end in Arrivals(of: input.payload.count, sizes: input.pieceSizes(from: 1)) {
            framed += encoder.header(byteCount: end - start)
            framed += input.payload[start..<end]
            start = end
        }
        do throws(WireError) {
            framed += try encoder.lastChunk()
        } catch {
            throw FuzzFinding("a last chunk without trailers is refused: \(error)")
        }
        let reading = try ChunkedReading(framed, .whole(framed.count), .default, isDirect: false)
        try require(
            reading.isComplete && reading.payload == input.payload, "a framed body reads back as \(reading)")
        try require(reading.consumed == framed.count, "a framed body is read up to \(reading.consumed)")
    }
}

/// The result of a chunked decoder for an input.
private struct ChunkedReading: Equatable {
    var payload: [UInt8] = []
    var isComplete = false
    var trailers: FieldBlock?
    /// The number of consumed bytes; 0 for a malformed body, where it depends on how the bytes arrive.
    var consumed = 0
    var error: WireError?

    init(_ bytes: [UInt8], _ arrivals: Arrivals, _ limits: WireLimits, isDirect: Bool) throws(FuzzFinding) {
        var decoder = ChunkedDecoder(limits: limits)
        var position = 0
        do throws(WireError) {
            for end in arrivals {
                try read(bytes, from: &position, to: end, &decoder, isDirect)
                if isComplete { break }
            }
            consumed = position
        } catch {
            self.error = error
        }
        try require(
            decoder.payloadByteCount == UInt64(payload.count),
            "the decoder counts \(decoder.payloadByteCount)")
    }

    private mutating func read(
        _ bytes: [UInt8], from position: inout Int, to end: Int, _ decoder: inout ChunkedDecoder,
        _ isDirect: Bool
    ) throws(WireError) {
        while !isComplete {
            let direct = Int(clamping: min(decoder.directPayloadByteCount, UInt64(end - position)))
            if isDirect, direct > 0 {
                decoder.receivedDirectly(direct)
                payload += bytes[position..<position + direct]
                position += direct
                continue
            }
            let step = try decoder.decode(bytes.span.extracting(position..<end))
            switch step.event {
            case .needMoreBytes:
                position += step.consumed
                return
            case .payload(let range):
                payload += bytes[position + range.lowerBound..<position + range.upperBound]
            case .end(let trailers):
                self.trailers = trailers
                isComplete = true
            }
            position += step.consumed
        }
    }
}
