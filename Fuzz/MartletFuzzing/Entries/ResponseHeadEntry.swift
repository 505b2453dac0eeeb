import MartletWire

extension FuzzEntry {
    /// Response heads. Control 0: limits.
    ///
    /// The head or the error does not depend on how the bytes arrive. An accepted head is within the limits, cannot
    /// split a message, and survives writing and parsing.
    static let responseHead = FuzzEntry("response-head") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let limits = WireLimits(input, at: 0)
        let arrivals = input.arrivals(from: 1)
        let whole = HeadReading(input.payload, arrivals[0], limits)
        for other in arrivals.dropFirst() {
            let reading = HeadReading(input.payload, other, limits)
            try require(reading == whole, "\(reading) when \(other), and \(whole) at once")
        }
        guard case .head(let head, let byteCount) = whole else { return }
        try head.checkBounds(byteCount, in: input.payload, limits)
        try head.checkRoundTrip()
    }
}

/// The result of a head parser for an input.
private enum HeadReading: Equatable {
    case head(ResponseHead, byteCount: Int)
    case incomplete
    case rejected(WireError)

    init(_ bytes: [UInt8], _ arrivals: Arrivals, _ limits: WireLimits) {
        var parser = HeadParser(limits: limits)
        self = .incomplete
        do throws(WireError) {
            for count in arrivals {
                guard let head = try parser.parse(bytes.span.extracting(0..<count)) else { continue }
                self = .head(head, byteCount: parser.consumedByteCount)
                return
            }
        } catch {
            self = .rejected(error)
        }
    }
}

extension ResponseHead {
    fileprivate func checkBounds(
        _ byteCount: Int, in bytes: [UInt8], _ limits: WireLimits
    ) throws(FuzzFinding) {
        try require(byteCount <= bytes.count, "the head has \(byteCount) bytes of \(bytes.count)")
        try require(byteCount <= limits.headByteLimit, "the head has \(byteCount) bytes, beyond its limit")
        try require(fields.count < limits.lineCountLimit, "the head has \(fields.count) fields")
        try require((100...999).contains(status), "the status is \(status)")
        try FieldRules.check(fields)
    }

    /// Writes the head and parses the result.
    fileprivate func checkRoundTrip() throws(FuzzFinding) {
        var encoder = ResponseEncoder()
        let isSame: Bool
        do throws(WireError) {
            try encoder.begin(status: status, reason: reason, version: version)
            for index in fields.indices {
                try encoder.field(
                    name: fields.nameString(at: index), rawValue: Array(fields.value(at: index)))
            }
            encoder.end()
        } catch {
            // Repeated framing and routing fields are parsed and checked later, and they are never written.
            let isExpected = error.code == .conflictingFraming || error.code == .repeatedField
            try require(isExpected, "a head that was read is not written: \(error)")
            return
        }
        var parser = HeadParser()
        do throws(WireError) {
            let again = try parser.parse(encoder.bytes.span)
            isSame = parser.consumedByteCount == encoder.bytes.count && again == self
        } catch {
            throw FuzzFinding("a head that was written is refused: \(error)")
        }
        try require(isSame, "\(self) does not read back equal")
    }
}
