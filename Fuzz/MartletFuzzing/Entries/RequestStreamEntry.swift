import MartletWire

extension FuzzEntry {
    /// Consecutive requests that the test origin's machine reads. Control 0: limits.
    ///
    /// The requests and the error do not depend on how the bytes arrive.
    static let requestStream = FuzzEntry("request-stream") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let limits = WireLimits(input, at: 0)
        let arrivals = input.arrivals(from: 1)
        let whole = RequestReading(input.payload, arrivals[0], limits)
        for other in arrivals.dropFirst() {
            let reading = RequestReading(input.payload, other, limits)
            try require(reading == whole, "\(reading) when \(other), and \(whole) at once")
        }
        for request in whole.requests {
            try FieldRules.check(request.head.fields)
            try require(request.head.method.utf8.allSatisfy(ByteClass.isToken), "the method is no token")
            try require(request.head.target.utf8.allSatisfy(ByteClass.isTarget), "the target holds a blank")
            switch request.framing {
            case .none, .length(0): try require(request.body.isEmpty, "there is a body where none may be")
            case .length(let length):
                let count = UInt64(request.body.count)
                try require(count <= length, "\(count) bytes came of a body of \(length)")
                try require(
                    request.isComplete == (count == length), "complete after \(count) of \(length) bytes")
            case .chunked: break
            case .untilClose: throw FuzzFinding("a request ends with its connection")
            }
        }
    }
}
