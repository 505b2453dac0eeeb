package import MartletClient

/// The events of a download.
package typealias DownloadEventLog = EventLog<DownloadEvent>
