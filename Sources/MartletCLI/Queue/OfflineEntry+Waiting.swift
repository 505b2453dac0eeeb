import Martlet

extension OfflineEntry {
    /// Whether it is to be sent by itself.
    var isWaiting: Bool {
        switch state {
        case .waiting, .sending: true
        case .dead, .uncertain: false
        }
    }
}
