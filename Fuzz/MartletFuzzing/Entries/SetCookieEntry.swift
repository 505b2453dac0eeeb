import MartletCaching
import MartletCookies
import MartletCore

extension FuzzEntry {
    /// Cookies: what sites set, files of both formats, lists of public suffixes. The control says which.
    ///
    /// `S`, or anything else: lines of `Set-Cookie`, and those that begin with `@` name the address they come
    /// from. What is stored belongs to the host that set it; what is sent belongs to the host it goes to, has
    /// no control characters and no more bytes than allowed; files of what is stored read back equal. `N`: a
    /// Netscape file, `F`: a jar's file; what is read is written and reads back equal. `L`: a list of public
    /// suffixes, and in its first line a name.
    static let setCookie = FuzzEntry("set-cookie") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        switch input[0] {
        case UInt8(ascii: "N"):
            let read = NetscapeCookieFile.cookies(input.payload, now: CookieSites.now).cookies
            try CookieSites.checkFiles(of: read)
        case UInt8(ascii: "F"):
            try CookieSites.checkFiles(of: CookieFile.content(input.payload).cookies)
        case UInt8(ascii: "L"):
            try CookieSites.checkSuffixes(input.payload)
        default:
            var sites = CookieSites()
            for line in input.payload.split(separator: 0x0A, omittingEmptySubsequences: false) {
                try sites.take(Array(line))
            }
            try sites.checkAll()
        }
    }
}
