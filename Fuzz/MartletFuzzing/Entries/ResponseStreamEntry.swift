import MartletWire

extension FuzzEntry {
    /// Responses that the client machine reads, including interim responses, the body and the end of the stream.
    ///
    /// Control 0: the method (`H` HEAD, `C` CONNECT, others GET). Control 1: limits; bit 3 receives payload directly,
    /// as into a caller's buffer. Control 2: bit 0 ends the stream without an orderly close, and bit 1 selects
    /// HTTP/1.0.
    ///
    /// The events, the error and the decision on reuse do not depend on how the bytes arrive. No byte beyond
    /// Content-Length is delivered. A body is complete only with all of its bytes. HEAD, 204 and 304 have no body. No
    /// connection is reused after an error or an ambiguous head.
    static let responseStream = FuzzEntry("response-stream") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let scene = ResponseScene(input)
        let arrivals = input.arrivals(from: 3)
        let whole = try ResponseReading(input.payload, arrivals[0], scene, isDirect: false)
        for other in arrivals.dropFirst() {
            let reading = try ResponseReading(input.payload, other, scene, isDirect: input.isSet(3, at: 1))
            try require(reading == whole, "\(reading) when \(other), and \(whole) at once")
        }
        try whole.check(scene, input.payload)
    }
}
