package import MartletStorage
import SystemPackage

/// What is noted of a complete file just before it gets its name, so that whoever comes after a process that did not live to
/// tell it knows the file again, and neither fetches it once more nor takes it for somebody else's.
package struct DownloadPublication: Hashable, Sendable {
    /// What there is to tell once it has the name, as a later run tells it. Its path is the name it wants.
    package var result: DownloadResult
    /// The file as it is under its part's name.
    package var part: FileMark
    /// The copy that gets the name instead, where the file itself cannot have it.
    package var copy: FileMark?

    /// What is noted of a file.
    package init(result: DownloadResult, part: FileMark, copy: FileMark? = nil) {
        self.result = result
        self.part = part
        self.copy = copy
    }

    /// Looks whether the file got its name, and does what was left to be done behind that.
    ///
    /// It blocks: it belongs on a worker.
    /// - Parameter collision: What was to become of a file that had the name.
    /// - Returns: The name; nil where no file of the names it may have got is this one.
    package func complete(
        _ collision: DownloadOptions.Collision, files: any FileSystem
    ) throws(StorageError) -> PublishedName? {
        let names = PartNames(target: result.path.string)
        guard let name = try name(among: names.candidates(collision), files) else { return nil }
        do throws(StorageError) {
            try files.syncFolder(names.folderPath)
        } catch {
            return PublishedName(path: name, fault: error)
        }
        // A part that is another one belongs to a download that came later, and so does the record.
        if let present = try DownloadPublication.status(names.part, files) {
            guard part.isOf(present) else { return PublishedName(path: name) }
            try? files.remove(names.part)
        }
        for path in [names.record, names.nextRecord, names.nextPart] { try? files.remove(path) }
        return PublishedName(path: name)
    }

    private func name(
        among candidates: some Sequence<String>, _ files: any FileSystem
    ) throws(StorageError) -> String? {
        for candidate in candidates {
            guard let status = try DownloadPublication.status(candidate, files),
                status.byteCount == result.byteCount, (copy ?? part).isOf(status)
            else { continue }
            return candidate
        }
        return nil
    }

    private static func status(
        _ path: String, _ files: any FileSystem
    ) throws(StorageError) -> FileStatus? {
        do throws(StorageError) {
            return try files.status(at: path)
        } catch  where error.isMissingFile {
            return nil
        }
    }
}
