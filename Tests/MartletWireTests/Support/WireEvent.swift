import MartletWire

/// The events of a reader; adjacent pieces of payload are one event.
enum WireEvent: Equatable {
    case informational(ResponseHead)
    case head(ResponseHead, BodyFraming)
    case request(RequestHead, BodyFraming)
    case body([UInt8])
    case end(FieldBlock?)
    case fault(WireError)
}

extension [WireEvent] {
    /// Appends an event, and joins adjacent payload.
    mutating func add(_ event: WireEvent) {
        if case .body(let more) = event, case .body(let bytes) = last {
            self[count - 1] = .body(bytes + more)
        } else {
            append(event)
        }
    }
}
