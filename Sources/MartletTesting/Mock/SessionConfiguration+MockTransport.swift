public import MartletClient

extension SessionConfiguration {
    /// A configuration whose sessions connect to a mock transport and to nothing else.
    ///
    /// ```swift
    /// let mock = MockTransport { request in .text("Hello, \(request.path)") }
    /// let session = HTTPSession(configuration: .mock(mock))
    /// ```
    public static func mock(_ transport: MockTransport) -> SessionConfiguration {
        var configuration = SessionConfiguration.ephemeral
        configuration.connect(to: transport)
        return configuration
    }

    /// Makes sessions of this configuration connect to a mock transport and to nothing else.
    public mutating func connect(to transport: MockTransport) {
        connector = transport
    }
}
