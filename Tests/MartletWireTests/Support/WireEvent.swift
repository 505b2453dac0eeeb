import MartletWire

/// What a reader made of some bytes; neighbouring pieces of payload are one event, however they came.
enum WireEvent: Equatable {
    case informational(ResponseHead)
    case head(ResponseHead, BodyFraming)
    case request(RequestHead, BodyFraming)
    case body([UInt8])
    case end(FieldBlock?)
    case fault(WireError)
}

extension [WireEvent] {
    /// Adds an event, and joins payload to payload.
    mutating func add(_ event: WireEvent) {
        if case .body(let more) = event, case .body(let bytes) = last {
            self[count - 1] = .body(bytes + more)
        } else {
            append(event)
        }
    }
}
