import Martlet

/// How long tests wait. A machine may stall for half a minute at any line, and a test must not fail for it.
enum Patience {
    /// For what is sure to happen, and soon on a machine that is not busy.
    static let long = Duration.seconds(300)
    /// The most that the end of a wait may take where whatever else could end that wait takes ``long``.
    static let ending = Duration.seconds(150)
}

extension Timeouts {
    /// Clocks that end nothing but a hang, but for those that a test sets; it may be that these come before the call has
    /// got to what they are to end.
    static func patient(
        poolWait: Duration? = nil, connect: Duration? = Patience.long, head: Duration? = Patience.long,
        idle: Duration? = Patience.long, total: Duration? = nil
    ) -> Timeouts {
        Timeouts(poolWait: poolWait, connect: connect, head: head, idle: idle, unread: Patience.long, total: total)
    }
}

extension SessionConfiguration {
    /// The default configuration with clocks that end nothing but a hang.
    static var patient: SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.timeouts = .patient()
        return configuration
    }
}

extension HTTPError.Phase {
    /// Whether a call comes through this phase before it comes to another. A clock that ends a call in a phase before the
    /// one that it is to end came too early for the machine.
    func precedes(_ other: HTTPError.Phase) -> Bool {
        let order: [HTTPError.Phase] = [
            .preparing, .waitingForConnection, .resolving, .connecting, .tunneling, .tlsHandshake, .sending,
            .awaitingHead, .receivingBody,
        ]
        guard let place = order.firstIndex(of: self), let end = order.firstIndex(of: other) else {
            return false
        }
        return place < end
    }
}
