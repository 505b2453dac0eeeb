import MartletConnections

/// How a call wants its transfer made: who joins another's has that one's clocks, rate and place in the queue.
struct FlightPace: Hashable {
    /// The clocks but the total one, which each call has for itself.
    private let timeouts: Timeouts
    private let bandwidth: BandwidthLimit
    /// The number of the calls that are under one limit with it.
    private let bandwidthGroup: UInt64?
    private let priority: RequestPriority
    private let order: WaitingOrder

    /// That of a call.
    init(_ call: Call) {
        let options = call.options
        var timeouts = call.timeouts
        timeouts.total = nil
        self.timeouts = timeouts
        bandwidth = options.bandwidth
        bandwidthGroup = options.bandwidthGroup?.number
        priority = options.priority ?? call.settings.configuration.priority
        order = options.order ?? call.settings.configuration.order
    }
}
