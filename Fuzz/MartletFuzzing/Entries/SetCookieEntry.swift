import MartletCaching
import MartletCookies
import MartletCore

extension FuzzEntry {
    /// Cookies of sites, cookie files of both formats, and public suffix lists. The control selects one of them.
    ///
    /// `S` or any other control: lines of `Set-Cookie`; a line that begins with `@` is the URL of the following ones. A
    /// stored cookie belongs to the host that set it. A sent cookie belongs to its target host, has no control
    /// characters, and is within the size limit. Files of the stored cookies are read back equal.
    /// `N`: a Netscape file, and `F`: a jar's file; the cookies survive writing and reading.
    /// `L`: a public suffix list with a name in its first line.
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
