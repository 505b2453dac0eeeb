import MartletCore

extension SessionConfiguration {
    /// The configuration for a machine that is busy with other tests, where a handshake can take long.
    static var patient: SessionConfiguration {
        var configuration = SessionConfiguration.ephemeral
        configuration.timeouts = Timeouts(
            connect: .seconds(300), head: .seconds(300), idle: .seconds(300), total: .seconds(600))
        return configuration
    }
}
