package import MartletClient

/// One download, as often as it is run: each run goes on where the last one stopped.
package final class DownloadJob: Sendable {
    /// What is downloaded, and how.
    package struct Plan: Sendable {
        /// Where the file is, as it was given: user info and all.
        package var url: HTTPURL
        /// Where it goes.
        package var target: DownloadTarget
        /// How.
        package var options: DownloadOptions

        /// A plan.
        package init(url: HTTPURL, target: DownloadTarget, options: DownloadOptions) {
            self.url = url
            self.target = target
            self.options = options
        }
    }
}
