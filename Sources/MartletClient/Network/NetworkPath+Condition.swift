public import MartletTransport

extension NetworkPath {
    /// What it means for how much is asked of the network at once: ``NetworkCondition/mobile`` for whatever is expensive, and
    /// ``NetworkCondition/unknown`` where there is no path.
    public var condition: NetworkCondition {
        guard let interface = interfaces.first else { return .unknown }
        if interface.isExpensive { return .mobile }
        return interface.kind == .wifi ? .wifi : .unmetered
    }
}
