import MartletContent
import MartletCore
import MartletDownloads
import MartletMetalink

extension FuzzEntry {
    /// Metalink documents.
    ///
    /// A file has a safe name, which is no option of a command, a hash of the length of its function, and URLs in the
    /// order of their priorities. The options of a download are valid for its URL. Files and URLs are within the limit.
    static let metalink = FuzzEntry("metalink") { (bytes) throws(FuzzFinding) in
        let link: Metalink
        do throws(MetalinkError) { link = try Metalink(bytes) } catch {
            return try require(!error.message.isEmpty, "an error without a message")
        }
        let entryCount = link.files.reduce(link.files.count) { $0 + $1.locations.count }
        try require(entryCount <= Metalink.entryLimit, "\(entryCount) files and URLs")
        for file in link.files {
            try require(SafeFilename(file.name)?.text == file.name, "“\(file.name)” is not a safe name")
            try require(file.name.utf8.first != UInt8(ascii: "-"), "“\(file.name)” is an option")
            if let checksum = file.checksum {
                try require(Checksum(checksum.algorithm, checksum.bytes) == checksum, "\(checksum) has a wrong length")
            }
            let priorities = file.locations.map(\.priority)
            try require(priorities == priorities.sorted(), "the URLs have the priorities \(priorities)")
            try require(
                priorities.allSatisfy { (1...999_999).contains($0) }, "a priority is out of bounds: \(priorities)")
            try require(
                file.locations.allSatisfy { $0.country?.utf8.count ?? 2 == 2 }, "a country is not two letters")
        }
        try require(
            link.downloads.count == link.files.count { !$0.locations.isEmpty }, "not each file has a download")
        for download in link.downloads {
            let options = download.options
            do throws(HTTPError) { try options.checkMirrors(of: download.url) } catch {
                throw FuzzFinding("the options of “\(download.name)” are invalid: \(error.message)")
            }
        }
    }
}
