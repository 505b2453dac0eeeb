import MartletWire

extension ClientMachine {
    /// Feeds literal bytes to the machine until it needs more, and returns its events or the error.
    mutating func events(of text: String) -> [WireEvent] {
        var unread = Array(text.utf8)
        var events: [WireEvent] = []
        do throws(WireError) {
            while true {
                let received = try receive(unread.span)
                let taken = Array(unread[..<received.consumed])
                unread.removeFirst(received.consumed)
                switch received.event {
                case .needMoreBytes: return events
                case .informational(let head): events.add(.informational(head))
                case .head(let head, let framing): events.add(.head(head, framing))
                case .body(let range): events.add(.body(Array(taken[range])))
                case .end(let trailers):
                    events.add(.end(trailers))
                    finish(leftoverByteCount: unread.count)
                    return events
                }
            }
        } catch {
            events.add(.fault(error))
            return events
        }
    }

    /// Returns the error of ending the stream, or `nil`.
    mutating func faultOfEnd(isClean: Bool) -> WireError? {
        do throws(WireError) {
            _ = try receiveEndOfStream(isClean: isClean)
            return nil
        } catch {
            return error
        }
    }
}
