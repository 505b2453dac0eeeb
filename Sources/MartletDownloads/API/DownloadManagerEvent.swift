public import MartletClient
public import SystemPackage

/// What happens to the downloads of a ``DownloadManager``. None is ever left out for a slow subscriber. More may be added: a
/// `switch` needs a default.
public enum DownloadManagerEvent: Sendable {
    /// It was added, and survives the process from here on.
    case added(DownloadID)
    /// It runs, for the first time or again.
    case began(DownloadID)
    /// Its file is there.
    case finished(DownloadID, DownloadResult)
    /// It failed; the others go on.
    case failed(DownloadID, HTTPError)
    /// It is paused, and stays so until it is resumed.
    case paused(DownloadID)
    /// It was cancelled, and nothing of it is left.
    case cancelled(DownloadID)
    /// What is known of it could not be written, or what has come of it could not be removed. It goes on in this process;
    /// the next one that opens the directory may find it as it was before.
    case fileFailed(DownloadID, HTTPError)
    /// A file of the directory is damaged: it is in its folder `corrupt` now, at this path, and its download is not known any
    /// more. What had come of it lies beside its target.
    case itemSetAside(path: FilePath, reason: String)
    /// A file of the directory cannot be used and was left as it is: a newer version of Martlet wrote it, or it cannot be
    /// read at the moment.
    case itemLeftAlone(path: FilePath, reason: String)
    /// Every download that was added is finished, has failed or was cancelled. It comes once each time that this happens.
    case allFinished
}
