"""Opens pages in a headless Chromium, as a person would."""

import os
import shutil
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from .console import Fault


class Browser:
    """One browser with an empty profile. Without `scripts` it runs no JavaScript, which every page must bear."""

    def __init__(self, scripts: bool = False):
        self.profile = Path(tempfile.mkdtemp(prefix="afterthoughts-browser-"))
        try:
            self.driver = self._start(scripts, sandbox=os.geteuid() != 0)
        except WebDriverException as error:
            if os.geteuid() == 0 or "sandbox" not in str(error).lower() and "exited" not in str(error).lower():
                raise
            # A container without user namespaces allows no sandbox; the pages opened here are our own.
            self.driver = self._start(scripts, sandbox=False)
        self.driver.set_page_load_timeout(30)

    def _start(self, scripts: bool, sandbox: bool) -> webdriver.Chrome:
        binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if not binary or not driver:
            raise Fault("chromium or its driver was not found", "apt-get install chromium chromium-driver")
        options = Options()
        options.binary_location = binary
        for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                         "--disable-background-networking", "--window-size=900,1200",
                         f"--user-data-dir={self.profile}"):
            options.add_argument(argument)
        if not sandbox:
            options.add_argument("--no-sandbox")
        if not scripts:
            options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
        return webdriver.Chrome(options=options, service=Service(driver))

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    def open(self, address: str) -> "Browser":
        """An address that nobody answers leaves the browser's own error page, whose status is 0."""
        try:
            self.driver.get(address)
        except WebDriverException as error:
            if "net::ERR_" not in str(error):
                raise
        return self

    def reload(self) -> "Browser":
        """Asks again for the page that is shown, with the same form where a button led to it."""
        try:
            self.driver.refresh()
        except WebDriverException as error:
            if "net::ERR_" not in str(error):
                raise
        return self

    @property
    def status(self) -> int:
        """The HTTP status of the page that is shown."""
        return self.driver.execute_script("return performance.getEntriesByType('navigation')[0].responseStatus")

    @property
    def title(self) -> str:
        return self.driver.title

    @property
    def text(self) -> str:
        """What a person reads on the page."""
        return self.driver.find_element(By.TAG_NAME, "body").text

    @property
    def source(self) -> str:
        return self.driver.page_source

    def has(self, selector: str) -> bool:
        return bool(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def press(self, label: str = "") -> "Browser":
        """Presses the first button whose text holds `label` and waits for the page that follows."""
        for button in self.driver.find_elements(By.CSS_SELECTOR, "button, input[type=submit]"):
            if label.lower() in (button.text or button.get_attribute("value") or "").lower():
                before = self.driver.find_element(By.TAG_NAME, "html")
                button.click()
                WebDriverWait(self.driver, 30).until(lambda _: self._is_gone(before))
                return self
        raise AssertionError(f"no button {label!r} on this page:\n{self.text}")

    @staticmethod
    def _is_gone(element) -> bool:
        try:
            element.is_enabled()
            return False
        except WebDriverException:
            return True
