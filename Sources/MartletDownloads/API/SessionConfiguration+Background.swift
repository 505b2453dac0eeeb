public import MartletClient

extension SessionConfiguration {
    /// The defaults, for transfers that belong to a directory rather than to whoever waits for them: no clock ends a call
    /// because the whole of it takes long, or because others are before it.
    ///
    /// What outlives the process is the work of ``DownloadManager/background(directory:configuration:limits:prepare:)``.
    public static var background: SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.timeouts.total = nil
        configuration.timeouts.poolWait = nil
        // What reconnecting costs is nothing to them, so that a network that comes back slowly is waited for.
        configuration.timeouts.connect = .seconds(30)
        return configuration
    }
}
