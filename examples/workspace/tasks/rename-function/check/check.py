from pathlib import Path

import calculator
import prices
import shop

assert prices.with_tax(100, 0.2) == 120 and not hasattr(prices, "calc"), "prices.py has no with_tax, or still calc"
assert shop.total([10, 20]) == 36, "shop.py does not use it"
assert calculator.calculate("1+2") == 3, "calculator.py was changed"
assert "calc(" not in Path("shop.py").read_text(), "shop.py still calls calc"
