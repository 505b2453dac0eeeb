import MartletClient

extension SessionConfiguration {
    /// For a machine that is busy with other tests, where a handshake may take long.
    static var patient: SessionConfiguration {
        var configuration = SessionConfiguration.ephemeral
        configuration.timeouts.connect = .seconds(60)
        return configuration
    }
}
