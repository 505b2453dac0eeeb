import MartletWire

extension FuzzEntry {
    /// A response as the client's machine reads it, interim responses, body and end of stream included.
    ///
    /// Control 0: the method (`H` HEAD, `C` CONNECT, others GET). Control 1: limits; bit 3 has payload go
    /// past the machine, as into a caller's buffer. Control 2: bit 0 breaks the stream off without an orderly
    /// close, bit 1 speaks HTTP/1.0.
    ///
    /// However the bytes arrive, the same events, the same error and the same verdict on reuse come of them.
    /// Nothing is delivered beyond Content-Length, a body is complete only when all of it came, HEAD, 204 and
    /// 304 have none, and no connection lives on after a fault or an ambiguous head.
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
