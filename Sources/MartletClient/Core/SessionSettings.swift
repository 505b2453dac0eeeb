/// A session's configuration, held once for all of its calls.
final class SessionSettings: Sendable {
    /// The configuration.
    let configuration: SessionConfiguration

    init(_ configuration: SessionConfiguration) {
        self.configuration = configuration
    }
}
