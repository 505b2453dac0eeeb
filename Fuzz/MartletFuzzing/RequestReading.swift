import MartletWire

/// The requests that the server machine reads from a stream of bytes.
struct RequestReading: Equatable {
    /// A request with its body.
    struct Request: Equatable {
        let head: RequestHead
        let framing: BodyFraming
        var body: [UInt8] = []
        var isComplete = false
        var trailers: FieldBlock?
    }

    /// The requests; only the last one may be incomplete.
    private(set) var requests: [Request] = []
    /// The error of a malformed or incomplete request.
    private(set) var error: WireError?

    /// Reads requests, then ends the stream.
    init(_ bytes: [UInt8], _ arrivals: Arrivals, _ limits: WireLimits) {
        var machine = ServerMachine(limits: limits)
        var position = 0
        do throws(WireError) {
            for end in arrivals {
                while true {
                    let received = try machine.receive(bytes.span.extracting(position..<end))
                    take(received.event, bytes, position)
                    position += received.consumed
                    if received.event == .needMoreBytes { break }
                    if case .end = received.event { machine.nextRequest() }
                }
            }
            if let last = try machine.receiveEndOfStream() { take(last, bytes, position) }
        } catch {
            self.error = error
        }
    }

    private mutating func take(_ event: ServerMachine.Event, _ bytes: [UInt8], _ position: Int) {
        switch event {
        case .needMoreBytes: break
        case .head(let head, let framing): requests.append(Request(head: head, framing: framing))
        case .body(let range):
            let piece = bytes[position + range.lowerBound..<position + range.upperBound]
            requests[requests.count - 1].body += piece
        case .end(let trailers):
            requests[requests.count - 1].isComplete = true
            requests[requests.count - 1].trailers = trailers
        }
    }
}
