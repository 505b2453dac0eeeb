public import SystemPackage

/// Where a download goes.
public enum DownloadTarget: Hashable, Sendable, Codable {
    /// To a file of this name, whose folder must exist.
    case file(FilePath)
    /// Into a folder that must exist, under the name that the server proposes (`Content-Disposition`, RFC 6266), else that
    /// of the URL's path; made safe, so that it is never outside of the folder, nor hidden. `download` where there is
    /// none.
    case folder(FilePath)
}
